"""What each name of a text refers to: names that a declaration leaves open are looked up in what stands before it."""

from __future__ import annotations

from typing import Protocol

from dpl.syntax import tree
from dpl.types.state.env import TYPES

from dplc.tools.lsp.text.names import Foreign, Names, Symbol, Target, Use
from dplc.tools.lsp.text.pages import Page

FIRST = "Prelude"


class Text(Protocol):
    """What is asked of a text and of the modules that it imports."""

    @property
    def pages(self) -> list[Page]: ...

    def names(self, page: Page) -> list[Names]: ...

    def offers(self, module: str, space: str, name: str) -> bool: ...

    def record_at(self, page: Page, end: int) -> tuple[str, str] | None: ...

    def field_of(self, owner: Symbol, name: str) -> Symbol | None: ...


class Linker:
    """Goes through a text with what is in scope at each declaration."""

    def __init__(self, text: Text) -> None:
        self.text = text
        self.layers: list[dict[tuple[str, str], Symbol] | str] = [FIRST, {}]  # of this text, or a module's name
        self.found: dict[Use, Target | None] = {}

    def links(self, before: Page | None = None) -> dict[Use, Target | None]:
        """Of the whole text, or only what comes before a page."""
        for page in self.text.pages:
            if page is before:
                break
            for names in self.text.names(page):
                if names.early:
                    self.declare(names)
                for use in names.uses:
                    self.found[use] = use.symbol or self.target(use, page)
                if not names.early:
                    self.declare(names)
                if isinstance(names.decl, tree.DeclOpen):
                    self.layers += [names.decl.name, {}]
        return self.found

    def declare(self, names: Names) -> None:
        own = self.layers[-1]
        assert isinstance(own, dict)
        for symbol in names.declares:
            own[symbol.space, symbol.name] = symbol

    def target(self, use: Use, page: Page | None = None) -> Target | None:
        if use.qualifier:
            return Foreign(use.qualifier, use.space, use.name)
        if use.space == "fields" and page is not None and (one := self.field(use, page)):
            return one
        for layer in reversed(self.layers):
            if isinstance(layer, dict):
                if found := layer.get((use.space, use.name)):
                    return found
            elif use.space != "modules" and self.text.offers(layer, use.space, use.name):
                return Foreign(layer, use.space, use.name)
        if use.space == "types" and use.name in TYPES:
            return Foreign(FIRST, "types", use.name)
        return Foreign(use.name, "modules", "") if use.space == "modules" else None

    def field(self, use: Use, page: Page) -> Target | None:
        """A field of the record in front of it, where several types have one of that name."""
        if use.span.source.text[use.span.start - 1] != ".":
            return None
        module, owner = self.text.record_at(page, use.span.start - 1) or ("", "")
        if module:
            return Foreign(module, "fields", use.name)
        for layer in self.layers:
            for symbol in layer.values() if isinstance(layer, dict) else ():
                if symbol.space == "types" and symbol.name == owner:
                    return self.text.field_of(symbol, use.name)
        return None
