"""The terms directly inside a core term."""

from __future__ import annotations

from dpl.core import term


def subterms(t) -> tuple:
    match t:
        case term.Lam(body=body) | term.Shift(body=body) | term.Reset(body=body):
            return (body,)
        case term.App(fn=fn, arg=arg):
            return fn, arg
        case term.Let(rhs=rhs, body=body):
            return rhs, body
        case term.LetRec(bindings=bindings, body=body):
            return (*(value for _, value in bindings), body)
        case term.Tuple(items=items) | term.ArrayLit(items=items):
            return items
        case term.Con(arg=arg):
            return (arg,) if arg is not None else ()
        case term.Field(record=record):
            return (record,)
        case term.Prim(args=args):
            return args
        case term.If(cond=cond, then=then, else_=else_):
            return cond, then, else_
        case term.Match(scrutinee=scrutinee, arms=arms):
            return (scrutinee, *(x for arm in arms for x in (arm.guard, arm.body) if x is not None))
        case term.For(init=init, count=count, body=body):
            return init, count, body
        case term.While(init=init, cond=cond, body=body):
            return init, cond, body
        case term.Build(count=count, body=body):
            return count, body
        case term.Check(body=body, pairs=pairs):
            return (body, *(x for a, b, _ in pairs for x in (a, b)))
        case _:
            pass
    return ()
