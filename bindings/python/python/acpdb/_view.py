"""Frozen views of a session."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Literal, cast

from . import _shapes as shapes
from ._acpdb import View as Native
from ._typed import typed


@typed
class View:
    """One session as of one seq. Later appends do not show through it. May be used by several threads."""

    __slots__ = ("_native",)

    def __init__(self, native: Native) -> None:
        self._native = native

    @property
    def seq(self) -> int:
        """The seq it is as of."""
        return self._native.seq

    def context(
        self, *, layer: Literal["current", "recorded"] = "current", last: int | None = None
    ) -> shapes.Context:
        """The context as data: what the model sees, or with `layer="recorded"` what the host had; of the newest items `last`."""
        return cast(shapes.Context, self._native.call("context", layer=layer, last=last))

    def history(
        self, *, file: str | None = None, tool: str | None = None, filter: str = "", limit: int | None = None
    ) -> list[shapes.ItemRow]:
        """Every item, oldest first: of one file or tool, or those that a filter lets pass.

        >>> import acpdb, tempfile
        >>> with acpdb.open(tempfile.mkdtemp()) as store:
        ...     session = store.session("s1")
        ...     for turn in ("t1", "t2"):
        ...         _ = session.append(
        ...             acpdb.Entry.step(turn),
        ...             acpdb.Entry.tool_started(turn, "read", {"filePath": "src/main.rs"}),
        ...             acpdb.Entry.tool_finished(turn, "fn main() {} // and so on" * 20),
        ...         )
        ...     [(row["call"], row["rule"]) for row in session.view().history(file="src/main.rs")]
        [('t1', 'repeat'), ('t2', None)]
        """
        return cast("list[shapes.ItemRow]", self._native.call("history", file=file, tool=tool, filter=filter, limit=limit))

    def chain(self, item: str) -> shapes.Chain:
        """An item and what superseded it, oldest first."""
        return cast(shapes.Chain, self._native.call("chain", item=item))

    def explain(self, item: str) -> shapes.Explained:
        """Why an item is in the context, or is not."""
        return cast(shapes.Explained, self._native.call("explain", item=item))

    def is_visible(self, item: str) -> bool:
        """Whether the model sees an item, whole."""
        return cast(bool, self._native.call("is_visible", item=item))

    def body(self, item: str, face: Literal["input", "output"] = "output") -> bytes:
        """What was recorded of an item, byte for byte. What the context shows of it plays no part."""
        return self._native.body(item, face)

    def tokens(self) -> tuple[int, int]:
        """Estimated tokens of the context: as shown, and whole."""
        shown, whole = self._native.call("tokens")
        return shown, whole

    def search(
        self,
        *patterns: str,
        filter: str = "",
        regex: bool = False,
        word: bool = False,
        case: bool = False,
        lines: int = 0,
        limit: int = 1000,
    ) -> shapes.Found:
        """Items whose texts hold all patterns; `lines` around each match come along."""
        looked = {"filter": filter, "regex": regex, "word": word, "case": case, "lines": lines, "limit": limit}
        return cast(shapes.Found, self._native.call("search", patterns=patterns, **looked))

    def todos(self) -> shapes.Todos:
        """The todo list."""
        return cast(shapes.Todos, self._native.call("todos"))

    def memory(self, *, all: bool = False) -> list[shapes.MemoryRow]:
        """What is to be remembered; with `all` everything that ever was, and `standing` says what holds."""
        return cast("list[shapes.MemoryRow]", self._native.call("memory", all=all))

    def records(self, *, after: int = 0) -> list[tuple[int, bytes]]:
        """The host's own records on the active branch, byte for byte, each with its seq."""
        return self._native.records(after)

    # For adapters, who pair a call with its end by place: an id names a call for a moment only.

    def replaced(self) -> dict[int, str]:
        """Texts that stand in for outputs that the context does not show whole, each by the seq of the event that ended its call."""
        return dict(self._native.call("replaced"))

    def rewind_count(self) -> int:
        """How often the session went back to an earlier point. While it stays the same, records are only added."""
        return cast(int, self._native.call("rewind_count"))

    def export(
        self,
        format: shapes.ExportFormat,
        *,
        selection: shapes.Selection = "current",
        model: str | None = None,
        synthetic_results: bool = False,
        server_side: bool = False,
    ) -> bytes:
        """The body of a request, a transcript, a page (`html`) or spans (`otlp`)."""
        return self._native.export(
            format=format,
            selection=selection,
            model=model,
            synthetic_results=synthetic_results,
            server_side=server_side,
        )

    def __iter__(self) -> Iterator[shapes.ItemRow]:
        """Every item, oldest first, as `history` has them."""
        return iter(self.history())

    def _repr_html_(self) -> str:
        """The view as a page in a frame of its own, for notebooks."""
        page = escape(self.export("html").decode(), quote=True)
        return f'<iframe srcdoc="{page}" style="width: 100%; height: 40em; border: 0" sandbox="allow-scripts"></iframe>'

    def __repr__(self) -> str:
        return f"<acpdb.View at #{self.seq}>"
