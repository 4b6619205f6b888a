"""What several verbs of the command ask of their options and arguments."""

from __future__ import annotations

import click


class SomePath(click.Path):
    """A path that is not empty, as that of a variable of the shell that is not set: it would be this whole folder."""

    def convert(self, value, param: click.Parameter | None, ctx: click.Context | None):
        return super().convert(value, param, ctx) if value else self.fail("this path is empty", param, ctx)


PATHS = click.argument("paths", nargs=-1, type=SomePath())


def denied_codes(_ctx: click.Context, _param: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    """The codes of warnings, as they are written."""
    codes = tuple([code if code == "warnings" else code.upper() for code in given])
    for code in set(codes) - {"warnings"}:
        from dplc.tools.explain import pages

        if not code.startswith("W") or code not in pages():
            raise click.BadParameter(f"there is no warning {code}; `dpl explain --list` lists them")
    return codes
