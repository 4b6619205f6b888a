"""Small records for trees, types, terms and the state of passes; there are hundreds of such classes.

    @node      cannot change: like `dataclass(frozen=True, slots=True)`
    @record    can change: like `dataclass(slots=True)`

Defining such a class takes a tenth of the time (which matters at startup) and creating an instance a third.  The type
checker prevents changes of nodes; nothing does at run time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from operator import attrgetter
from types import CodeType, FunctionType
from typing import Any, TypeVar, dataclass_transform

Class = TypeVar("Class", bound=type)
Value = TypeVar("Value")


class Field:
    """What is special about a field; see `field`."""

    __slots__ = ("compare", "default_factory", "init")

    def __init__(self, default_factory: Callable[[], Any] | None, init: bool, compare: bool) -> None:
        self.default_factory = default_factory
        self.init = init
        self.compare = compare


def field(*, default_factory: Callable[[], Any] | None = None, init: bool = True, compare: bool = True) -> Any:
    """A field with a fresh default for each instance, or that is set by `__post_init__` and not by the caller (`init`),
    or that does not count when instances are compared (`compare`)."""
    return Field(default_factory, init, compare)


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def node(cls: Class) -> Class:
    """A class decorator that makes the annotations the fields: positional, in order, after those of the base class.
    Instances have slots, are compared and hashed by contents, and can be destructured by `match`."""
    return _made(cls, {"__eq__": _eq, "__hash__": _hash, "__repr__": _repr})


@dataclass_transform(field_specifiers=(field,))
def record(cls: Class) -> Class:
    """The same for instances that change.  They are compared by contents, and have no hash."""
    return _made(cls, {"__eq__": _eq, "__hash__": None, "__repr__": _repr})


@dataclass_transform(eq_default=False, field_specifiers=(field,))
def entity(cls: Class) -> Class:
    """The same for instances that change and are equal only to themselves."""
    return _made(cls, {"__eq__": object.__eq__, "__hash__": object.__hash__, "__repr__": _repr})


def _made(cls: Class, methods: dict[str, Any]) -> Class:
    base = cls.__mro__[1]
    own = tuple(cls.__annotations__)
    defaults = {**getattr(base, "_defaults", {}), **{name: cls.__dict__[name] for name in own if name in cls.__dict__}}
    special = {name: given for name, given in defaults.items() if isinstance(given, Field)}
    fields = (*getattr(base, "__match_args__", ()), *own)
    fields = tuple([name for name in fields if name not in special or special[name].init])

    body = {k: v for k, v in cls.__dict__.items() if k not in defaults and k not in ("__dict__", "__weakref__")}
    body |= {"__slots__": own, "__match_args__": fields, "_defaults": defaults}
    body["__init__"] = _built_late(lambda: made, fields, defaults, hasattr(cls, "__post_init__"))
    body["_key"] = _key(tuple([name for name in fields if name not in special or special[name].compare]))
    for name, method in methods.items():
        if name not in cls.__dict__ or cls.__dict__[name] is None:
            body[name] = method
    made = type(cls)(cls.__name__, cls.__bases__, body)  # of the same interface
    return made


def replace(value: Value, **changes: Any) -> Value:
    """A copy of a node or a record with some fields changed."""
    names: tuple[str, ...] = type(value).__match_args__  # pyrefly: ignore[missing-attribute]  (nodes have it)
    return type(value)(*(changes[name] if name in changes else getattr(value, name) for name in names))


def _built_late(owner: Callable[[], Any], fields: tuple[str, ...], defaults: dict[str, Any], finished: bool):
    """An `__init__` that makes the one of its class when the first instance is made: half of the classes that a run
    imports have none."""

    def __init__(self, *given: Any, **named: Any) -> None:
        init = owner().__init__ = _init(fields, defaults, finished)
        init(self, *given, **named)

    return __init__


def _init(fields: tuple[str, ...], defaults: dict[str, Any], finished: bool):
    given = [defaults[name] for name in fields if name in defaults]
    given = [one for one in given if not isinstance(one, Field) or one.default_factory is not None]
    code = _assigning(len(fields), any(isinstance(one, Field) for one in given), finished)
    names = tuple([fields[int(name[1:])] if name[1:].isdecimal() else name for name in code.co_names])
    code = code.replace(co_varnames=("self", *fields), co_names=names)
    return FunctionType(code, {"Field": Field}, "__init__", tuple(given))


@cache
def _assigning(count: int, fresh: bool, finished: bool) -> CodeType:
    """The code of an `__init__` that sets so many fields.  All classes with as many share it, under other names: to
    compile a text for each would take a tenth of the time that it takes to start.  If `fresh`, some make a fresh
    default; if `finished`, `__post_init__` is called."""
    numbers = range(count)
    value = "p{0} if p{0}.__class__ is not Field else p{0}.default_factory()" if fresh else "p{0}"
    lines = [f" self.f{i} = {value.format(i)}" for i in numbers] + [" self.__post_init__()"] * finished
    params = "".join(f", p{i}" for i in numbers)
    scope: dict[str, Any] = {}
    exec(f"def __init__(self{params}):\n" + ("\n".join(lines) or " pass"), scope)
    return scope["__init__"].__code__


def _key(fields: tuple[str, ...]):
    """A node -> its contents, for comparison."""
    return attrgetter(*fields) if fields else len


def _eq(self, other: Any) -> bool:
    if self is other:
        return True
    if self.__class__ is not other.__class__:
        return NotImplemented
    return not self.__match_args__ or self._key(self) == self._key(other)


def _hash(self) -> int:
    return hash(self._key(self)) if self.__match_args__ else hash(self.__class__)


def _repr(self) -> str:
    inside = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__match_args__)
    return f"{self.__class__.__qualname__}({inside})"
