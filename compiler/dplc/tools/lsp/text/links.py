"""Resolves the names of a text: the free names of a declaration are looked up in the declarations before it."""

from __future__ import annotations

from typing import Protocol

from dpl.source import Span
from dpl.syntax import tree
from dpl.types.state.env import TYPES

from dplc.tools.lsp.text.names import Foreign, Names, Symbol, Target, Use
from dplc.tools.lsp.text.pages import Page

FIRST = "Prelude"


class Text(Protocol):
    """The parts of a document that the linker uses."""

    @property
    def pages(self) -> list[Page]: ...

    def names(self, page: Page) -> list[Names]: ...

    def offers(self, module: str, space: str, name: str) -> bool: ...

    def record_at(self, page: Page, span: Span) -> tuple[str, str] | None: ...

    def field_of(self, owner: Symbol, name: str) -> Symbol | None: ...


class Linker:
    """Goes through the declarations of a text and keeps track of the names in scope."""

    def __init__(self, text: Text) -> None:
        self.text = text
        self.layers: list[dict[tuple[str, str], Symbol] | str] = [FIRST, {}]  # own names, or a module
        self.found: dict[Use, Target | None] = {}

    def links(self, before: Page | None = None) -> dict[Use, Target | None]:
        """The links of the whole text, or only of the pages before `before`."""
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
        if use.space == "fields" and page is not None and (one := self.field(use, page)):
            return one
        if use.qualifier:
            return Foreign(use.qualifier, use.space, use.name)
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
        """The field of the record before the point, or in whose braces it stands; its type decides among several fields
        of the same name."""
        module, owner = (self.text.record_at(page, use.record) if use.record else None) or ("", "")
        if module:
            return Foreign(module, "fields", use.name, owner)
        for layer in self.layers:
            for symbol in layer.values() if isinstance(layer, dict) else ():
                if symbol.space == "types" and symbol.name == owner:
                    return self.text.field_of(symbol, use.name)
        return None
