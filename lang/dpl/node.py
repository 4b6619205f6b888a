"""Small immutable records for trees, types and terms; there are hundreds of such classes.

Like `dataclass(frozen=True, slots=True)`, but defining a class takes a tenth of the time (which matters at startup) and
creating an instance a third.  The type checker prevents changes; nothing does at run time.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform

Class = TypeVar("Class", bound=type)
Value = TypeVar("Value")


@dataclass_transform(frozen_default=True)
def node(cls: Class) -> Class:
    """A class decorator that makes the annotations the fields: positional, in order, after those of the base class.
    Instances have slots, are compared and hashed by contents, and can be destructured by `match`."""
    base = cls.__mro__[1]
    own = tuple(cls.__annotations__)
    fields = (*getattr(base, "__match_args__", ()), *own)
    defaults = {**getattr(base, "_defaults", {}), **{name: cls.__dict__[name] for name in own if name in cls.__dict__}}

    body = {k: v for k, v in cls.__dict__.items() if k not in defaults and k not in ("__dict__", "__weakref__")}
    body |= {"__slots__": own, "__match_args__": fields, "__init__": _init(fields, defaults)}
    body |= {"_defaults": defaults, "_key": _key(fields)}
    for name, method in (("__eq__", _eq), ("__hash__", _hash), ("__repr__", _repr)):
        if name not in cls.__dict__ or cls.__dict__[name] is None:
            body[name] = method
    return type(cls)(cls.__name__, cls.__bases__, body)  # pyright: ignore[reportReturnType]  (of the same interface)


def replace(value: Value, **changes: Any) -> Value:
    """A copy of a node or a dataclass with some fields changed."""
    names: tuple[str, ...] = type(value).__match_args__  # pyright: ignore[reportAttributeAccessIssue]  (nodes have it)
    return type(value)(*(changes[name] if name in changes else getattr(value, name) for name in names))


def _init(fields: tuple[str, ...], defaults: dict[str, Any]):
    params = ", ".join(f"{name}=_defaults[{name!r}]" if name in defaults else name for name in fields)
    lines = "".join(f" self.{name} = {name}\n" for name in fields) or " pass\n"
    scope: dict[str, Any] = {"_defaults": defaults}
    exec(f"def __init__(self, {params}):\n{lines}", scope)
    return scope["__init__"]


def _key(fields: tuple[str, ...]):
    """A node -> its contents, for comparison."""
    return attrgetter(*fields) if fields else len


def _eq(self, other: object) -> bool:
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
