"""Requests -> answers.  A single thread with a large stack does all the work.  A text is checked when an answer needs
it, or when typing pauses."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import logging
import os
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from dpl.diagnostics import DplError
from dpl.source import Source
from dpl.syntax.formatter.format import format_source
from dpl.types.library import library
from lsprotocol import types as lsp
from pygls import uris
from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer

from dplc import VERSION
from dplc.tools.lsp.features import colours, completion, hints, hover, navigate, outline, problems, signature
from dplc.tools.lsp.input import Input, Lines, Output, Protocol
from dplc.tools.lsp.text.documents import Document, Workspace

PAUSE = 0.15  # seconds without typing, after which diagnostics are published
LULL = 2.0  # seconds after the last text was closed, after which memory is given back

log = logging.getLogger("dpl")


class Server(LanguageServer):
    def __init__(self) -> None:
        super().__init__("dpl", VERSION, lsp.TextDocumentSyncKind.Full, protocol_cls=Protocol)
        self.documents = Workspace()
        self.waiting: dict[str, asyncio.TimerHandle] = {}
        self.leaving: asyncio.TimerHandle | None = None

    def document(self, uri: str) -> Document:
        """The document of an open text, or of a file on disk if the text is not open.  Raises JsonRpcInvalidParams if
        there is none."""
        found = self.documents.open.get(uri)
        path = uris.to_fs_path(uri)
        if found is None and path:
            found = self.documents.document(Path(path))
        if found is None:
            raise JsonRpcInvalidParams(f"there is no text {uri}")
        return found

    def keep(self, uri: str, text: str, version: int) -> None:
        """Set the text of an open document.  Its diagnostics are published when typing pauses."""
        document = self.documents.open.get(uri)
        if document is None:
            path = uris.to_fs_path(uri) if uri.startswith("file:") else None
            document = Document(self.documents, uri, Path(path) if path else None, self.documents.encoding)
            self.documents.open[uri] = document
        document.version = version
        document.update(text)
        self.tell_later(uri, PAUSE)

    def tell_later(self, uri: str, seconds: float) -> None:
        if handle := self.waiting.pop(uri, None):
            handle.cancel()
        self.waiting[uri] = asyncio.get_running_loop().call_later(seconds, self.tell, uri)

    def tell(self, uri: str) -> None:
        """Publish the diagnostics of a text."""
        self.waiting.pop(uri, None)
        document = self.documents.open.get(uri)
        if document is None:
            return
        try:
            found = problems.diagnostics(document)
        except Exception:
            log.exception("checking %s", uri)
            return
        self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, found, document.version))

    def leave(self, uri: str) -> None:
        """Close a text.  Its memory is given back after LULL seconds in which no other text is closed."""
        self.documents.open.pop(uri, None)
        for handle in (self.waiting.pop(uri, None), self.leaving):
            if handle:
                handle.cancel()
        self.leaving = asyncio.get_running_loop().call_later(LULL, give_back)


server = Server()


def give_back() -> None:
    """Return unused memory to the system.  Python itself would collect reference cycles later, if at all."""
    server.documents.forget()
    gc.collect()
    if sys.platform == "linux" and (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)):  # in GNU's C library
        trim(0)


def placed(answer: Callable[[Document, int], Any]) -> Callable:
    """A feature whose answer depends on a text and a position in it."""

    @wraps(answer)
    def feature(params: Any) -> Any:
        document = server.document(params.text_document.uri)
        return answer(document, document.lines.offset(params.position))

    return feature


def whole(answer: Callable[[Document], Any]) -> Callable:
    """A feature whose answer depends on a text."""

    @wraps(answer)
    def feature(params: Any) -> Any:
        return answer(server.document(params.text_document.uri))

    return feature


# ---- opening, changing and closing texts ----------------------------------------------------------------------------


@server.feature(lsp.INITIALIZED)
def initialized(_: lsp.InitializedParams) -> None:
    server.documents.encoding = server.workspace.position_encoding
    library()
    gc.freeze()  # the library stays in memory; scanning it in each collection would take longer than most answers
    folders = [uris.to_fs_path(folder.uri) for folder in server.workspace.folders.values()]
    folders = folders or [server.workspace.root_path]
    server.documents.folders = [Path(folder) for folder in folders if folder]


@server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
def opened(params: lsp.DidOpenTextDocumentParams) -> None:
    item = params.text_document
    server.keep(item.uri, item.text, item.version)
    server.tell_later(item.uri, 0)


@server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
def changed(params: lsp.DidChangeTextDocumentParams) -> None:
    uri = params.text_document.uri
    server.keep(uri, server.workspace.get_text_document(uri).source, params.text_document.version)
    for other, document in server.documents.open.items():
        if other != uri and document.imports.files:
            document.checked = False
            server.tell_later(other, 4 * PAUSE)


@server.feature(lsp.TEXT_DOCUMENT_DID_SAVE)
@server.feature(lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES)
def saved(_: Any) -> None:
    """Files on disk have changed: imported modules are read again."""
    for uri, document in server.documents.open.items():
        document.checked = False
        server.tell_later(uri, PAUSE)


@server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
def closed(params: lsp.DidCloseTextDocumentParams) -> None:
    uri = params.text_document.uri
    server.leave(uri)
    server.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, []))
    saved(params)


# ---- requests -------------------------------------------------------------------------------------------------------

server.feature(lsp.TEXT_DOCUMENT_HOVER)(placed(hover.hover))
server.feature(lsp.TEXT_DOCUMENT_DEFINITION)(placed(navigate.definition))
server.feature(lsp.TEXT_DOCUMENT_PREPARE_RENAME)(placed(navigate.renameable))
server.feature(lsp.TEXT_DOCUMENT_COMPLETION, lsp.CompletionOptions(trigger_characters=["."]))(
    placed(completion.completions)
)
server.feature(lsp.TEXT_DOCUMENT_SIGNATURE_HELP, lsp.SignatureHelpOptions(trigger_characters=[" ", "("]))(
    placed(signature.signature)
)
server.feature(lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL)(whole(outline.symbols))
server.feature(lsp.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL, colours.LEGEND)(whole(colours.tokens))


@server.feature(lsp.TEXT_DOCUMENT_REFERENCES)
def references(params: lsp.ReferenceParams) -> list[lsp.Location]:
    document = server.document(params.text_document.uri)
    place = document.lines.offset(params.position)
    return navigate.references(document, place, params.context.include_declaration)


@server.feature(lsp.TEXT_DOCUMENT_RENAME, lsp.RenameOptions(prepare_provider=True))
def rename(params: lsp.RenameParams) -> lsp.WorkspaceEdit:
    document = server.document(params.text_document.uri)
    try:
        return navigate.rename(document, document.lines.offset(params.position), params.new_name)
    except navigate.Refused as refusal:
        raise JsonRpcInvalidParams(str(refusal)) from None


@server.feature(lsp.TEXT_DOCUMENT_INLAY_HINT)
def inlay_hints(params: lsp.InlayHintParams) -> list[lsp.InlayHint]:
    return hints.hints(server.document(params.text_document.uri), params.range)


@server.feature(lsp.TEXT_DOCUMENT_CODE_ACTION, lsp.CodeActionOptions([lsp.CodeActionKind.QuickFix]))
def code_actions(params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
    return problems.actions(server.document(params.text_document.uri), params.range)


@server.feature(lsp.TEXT_DOCUMENT_FORMATTING)
def formatting(params: lsp.DocumentFormattingParams) -> list[lsp.TextEdit] | None:
    """The edit that formats the text; None if the text cannot be parsed."""
    document = server.document(params.text_document.uri)
    try:
        text = format_source(Source("", document.text.replace("\r\n", "\n").replace("\r", "\n")))
    except DplError:
        return None
    return [] if text == document.text else [lsp.TextEdit(document.lines.range(0, len(document.text)), text)]


def serve() -> None:
    """Serve a client over standard input and output until it is done."""
    shown = logging.StreamHandler()
    shown.setFormatter(Lines("%(levelname)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[shown])
    logging.getLogger("pygls.protocol.json_rpc").addFilter(is_news)
    answers = Output(open(os.dup(1), "wb"))  # noqa: SIM115 (`close` of Output, as the client may have gone)
    sys.stdout = sys.stderr  # other output must not mix with the answers
    server.start_io(Input(sys.stdin.buffer), answers)  # pyrefly: ignore[bad-argument-type]
    answers.close()


def is_news(record: logging.LogRecord) -> bool:
    """A filter for the log: refused requests are not failures."""
    return not (record.exc_info and isinstance(record.exc_info[1], JsonRpcInvalidParams))
