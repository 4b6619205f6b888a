"""Specialisation to operators: a function whose argument is a function of functions, such as `grad`, gets a copy in
which the parameter is replaced by that argument.  So the nesting of derivatives is known at compile time.

    let twice d f x = d (d f) x
    twice grad sin 0.5                 twice@3 grad sin 0.5  where  twice@3 d f x = grad (grad f) x

The argument becomes a global function, so it must mention no local variables except such parameters.
"""

from __future__ import annotations

from dpl.core import term as c
from dpl.core import ty as t
from dpl.core.names import bound, mentioned

from dplc.narrow import expect_type
from dplc.passes.specialise import sizes
from dplc.passes.specialise.copier import Copier, Known, Operator, Scope
from dplc.passes.specialise.program import holds_function, takes_functions
from dplc.passes.specialise.projections import named, resolved

DEEPEST = 6  # nesting of operators made of operators; a recursion may nest them without end


def known(copier: Copier, head: c.Var, args: list[c.Term], scope: Scope) -> Known:
    """The parameters of a function whose arguments are operators."""
    text, found = function(copier, head, scope), []
    for arg in args:
        if not isinstance(text, c.Lam):
            break
        given = operator(copier, arg, scope)
        if given is not None and given.depth <= DEEPEST:
            found.append((text.param, given))
        text = text.body
    return tuple(found)


def function(copier: Copier, head: c.Var, scope: Scope) -> c.Term | None:
    """The definition of a function that may be copied, if there is one."""
    if (given := scope.known.get(head.name)) is not None:
        return function(copier, given.text, given.scope) if isinstance(given.text, c.Var) else None
    if (local := scope.locals.get(head.name)) is not None:
        return local.function
    definition = copier.definition(head.name)
    return None if definition is None else definition.body


def operator(copier: Copier, arg: c.Term, scope: Scope) -> Operator | None:
    ty = copier.ty(arg.ty, scope)
    if not isinstance(ty, t.Fn):
        return known_data(copier, arg, scope) if holds_operator(copier, ty) else None
    if not holds_function(ty.arg):
        return None
    arg = resolved(copier, arg, scope)
    if isinstance(arg, c.Var) and arg.name in scope.known:
        return scope.known[arg.name]
    if isinstance(arg, c.Var):
        definition = None if arg.name in scope.locals else copier.definition(arg.name)
        if definition is None or not isinstance(definition.body, c.Lam):
            return None
        told = sizes.to_tell(copier, arg, scope)
        fixed = tuple([n.value for n in told if isinstance(n, c.Lit)])
        key = arg.name, copier.arguments(definition.params, arg.inst, scope), fixed
        return Operator(key, arg, scope, 0) if len(fixed) == len(told) else None
    if not is_function(copier, arg) or not movable(copier, arg, scope):
        return None
    inner = {name: scope.known[name] for name in mentioned(arg) if name in scope.known}
    key = (id(arg), tuple(scope.types.items()), tuple((name, given.key) for name, given in inner.items()))
    return Operator(key, arg, scope, 1 + max((given.depth for given in inner.values()), default=0))


def known_data(copier: Copier, arg: c.Term, scope: Scope) -> Operator | None:
    """A tuple or record that holds operators."""
    if isinstance(arg, c.Var) and arg.name in scope.known:
        return scope.known[arg.name]
    held = named(copier, arg, scope)
    key = tuple([one and (one.name, tuple([copier.ty(i, scope) for i in types_of(one)])) for one in held])
    return Operator(key, arg, scope, 0) if any(held) else None


def holds_operator(copier: Copier, ty: t.Ty) -> bool:
    """True for tuples and records with a function of functions in them."""
    match ty:
        case t.Con(name) if (declared := copier.out.datas.get(name)) and declared.fields:
            [(_, fields)] = declared.cases
            return fields is not None and (takes_functions(fields) or holds_operator(copier, fields))
        case t.Tup(items):
            return any(takes_functions(item) for item in items)
        case _:
            return False


def types_of(name: c.Var) -> list[t.Ty]:
    return [given for given in name.inst if not isinstance(given, t.Size | t.Ctl | t.Pure)]


def with_parameter(copier: Copier, e: c.Term, param: str) -> c.Term:
    """A function of functions as a lambda, so that each use may have a copy: `grad` as `fun f -> grad f`."""
    return expanded(e, param) if takes_functions(e.ty) and is_function(copier, e) else e


def is_function(copier: Copier, e: c.Term) -> bool:
    """True for a lambda, for a known function, or for one applied to fewer names, literals and lambdas than it takes:
    copying it repeats no computation."""
    given = 0
    while isinstance(e, c.App) and isinstance(e.arg, c.Var | c.Lit | c.Lam):
        e, given = e.fn, given + 1
    if isinstance(e, c.Var) and (definition := copier.definition(e.name)) is not None:
        e = definition.body
        while given and isinstance(e, c.Lam):
            e, given = e.body, given - 1
    return isinstance(e, c.Lam) and not given


def movable(copier: Copier, text: c.Term, scope: Scope) -> bool:
    """True if a term mentions no local variables, except known parameters and those that it binds itself.  Sizes passed
    to the enclosing definition are local variables too."""
    own = bound(text)
    return not scope.sizes and all(
        name in own or name in scope.known or (name not in scope.locals and copier.definition(name) is not None)
        for name in mentioned(text)
    )


def expanded(text: c.Term, param: str) -> c.Lam:
    """A function term as a lambda."""
    if isinstance(text, c.Lam):
        return text
    ty = expect_type(t.Fn, text.ty)
    return c.Lam(text.span, ty, param, c.App(text.span, ty.result, text, c.Var(text.span, ty.arg, param)), "")
