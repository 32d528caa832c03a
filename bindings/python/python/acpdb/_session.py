"""Sessions: append, serve, ask, act."""

from __future__ import annotations

import uuid
from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast, overload

from . import _shapes as shapes, _waking
from ._acpdb import Entry, Receipt, Session as NativeSession, Ticket as NativeTicket
from ._typed import as_object, typed
from ._view import View


class Ticket:
    """A commit that was submitted: it becomes durable whether a thread waits for it or not.

    Await it in an event loop, or `wait` for it.
    """

    __slots__ = ("_native",)

    def __init__(self, native: NativeTicket) -> None:
        self._native = native

    @property
    def last_seq(self) -> int:
        """The seq that its last event has, or will have."""
        return self._native.last_seq

    def wait(self) -> Receipt:
        """Waits until the commit is durable. Other threads run meanwhile."""
        return self._native.wait()

    def __await__(self) -> Generator[Any, None, Receipt]:
        return _waking.receipt(self._native)

    def __repr__(self) -> str:
        return f"<acpdb.Ticket #{self.last_seq}>"


@dataclass(frozen=True, slots=True)
class Served:
    """A context that was recorded as sent."""

    body: bytes
    """What to send: the body of a request."""
    seq: int
    """The event that records it."""
    tokens: int
    """Estimated tokens of its items."""
    first_changed: int
    """The first item that differs from the context before: all before it is in the provider's cache."""
    breakpoints: list[int]
    """Where a mark for the provider's cache pays: after so many items each, first to last; at most three. The end of tools and system prompt
    is a fourth place. With `breakpoints=True` the body says so itself."""
    rebased: str | None
    """Why what was sent before was changed, if it was."""
    notes: list[str]
    """What could not be carried, in words."""
    over_budget: shapes.Json
    """The budget, if it could not be kept."""


@typed
class Step:
    """A step of the model: a turn. Made by `Session.step`."""

    __slots__ = ("_key", "_native")

    def __init__(self, native: NativeSession, key: str) -> None:
        self._native = native
        self._key = key

    @property
    def key(self) -> str:
        """Its key."""
        return self._key

    def context(
        self,
        format: shapes.Format = "anthropic",
        *,
        model: str | None = None,
        mode: shapes.Mode | None = None,
        tokens_max: int | None = None,
        cold: bool = False,
        prefix_tokens: int = 0,
        inject: bool = False,
        breakpoints: bool = False,
    ) -> Served:
        """The context for this step as the body of a request, recorded as sent. Durable when it returns.

        Between two rebases each context begins with the bytes of the one before, so that the provider's cache stays warm. Anthropic's keeps
        only what it is told to keep: `breakpoints` sets `cache_control` where that pays. These marks move from body to body, so that bytes
        differ where they stand; to the cache they are no difference.

        >>> import acpdb, json, tempfile
        >>> with acpdb.open(tempfile.mkdtemp()) as store:
        ...     session = store.session("s1")
        ...     _ = session.append(acpdb.Entry.message("user", "why is the build red?"))
        ...     served = session.step("step-1").context("anthropic")
        >>> json.loads(served.body)["messages"][0]["role"]
        'user'
        """
        body, facts = self._native.serve(
            key=self._key,
            format=format,
            model=model,
            mode=mode,
            tokens_max=tokens_max,
            cold=cold,
            prefix_tokens=prefix_tokens,
            inject=inject,
            breakpoints=breakpoints,
        )
        return Served(body=body, **facts)


@typed
class Session:
    """One session of a store, made by `Store.session`. Cheap; opened in the log by its first append."""

    __slots__ = ("_native",)

    def __init__(self, native: NativeSession) -> None:
        self._native = native

    @property
    def key(self) -> str:
        """The host's id of the session."""
        return self._native.key

    @property
    def host(self) -> str:
        """The host program."""
        return self._native.host

    @property
    def stream(self) -> str:
        """Id of its stream."""
        return self._native.stream

    # Record

    def append(self, *entries: Entry) -> Receipt:
        """Records facts as one commit: there as a whole or not at all, and durable when this returns.

        An entry whose `origin` is known already is skipped, so that what a crash left unsure can be told again.

        >>> import acpdb, tempfile
        >>> with acpdb.open(tempfile.mkdtemp()) as store:
        ...     session = store.session("s1")
        ...     receipt = session.append(
        ...         acpdb.Entry.message("user", "why is the build red?"),
        ...         acpdb.Entry.tool_started("call_1", "read", {"filePath": "src/main.rs"}),
        ...         acpdb.Entry.tool_finished("call_1", "fn main() {}"),
        ...     )
        >>> receipt.event_count  # the session's opening, and three facts
        4
        """
        return self._native.append(entries)

    def append_expecting(self, head: int, *entries: Entry) -> Receipt:
        """As `append`, if the session has no event behind `head`: the `seq` of the view that was read, or 0 for a session that is new.

        Else `HeadMovedError` names both, and nothing is recorded: read again, and decide anew.

        >>> import acpdb, tempfile
        >>> with acpdb.open(tempfile.mkdtemp()) as store:
        ...     session = store.session("s1")
        ...     first = session.append_expecting(0, acpdb.Entry.message("user", "hello"))
        ...     try:
        ...         _ = session.append_expecting(0, acpdb.Entry.message("user", "hello?"))
        ...     except acpdb.HeadMovedError:
        ...         print("somebody was faster")
        somebody was faster
        """
        return self._native.append_expecting(head, entries)

    def submit(self, *entries: Entry) -> Ticket:
        """As `append`, without waiting for the disk: await the ticket, or `wait` for it.

        >>> import acpdb, asyncio, tempfile
        >>> async def main() -> int:
        ...     with acpdb.open(tempfile.mkdtemp()) as store:
        ...         receipt = await store.session("s1").submit(acpdb.Entry.message("user", "hello"))
        ...         return receipt.event_count
        >>> asyncio.run(main())
        2
        """
        return Ticket(self._native.submit(entries))

    def append_lines(self, format: str, lines: bytes, *, prefix: str = "", salt: str | None = None) -> int:
        """Appends lines of a host's own recording, such as `"claude-code"`; how many events were new.

        Lines with an id are known again; of others, those of one call with the same `salt` are. `prefix` makes all differ.
        """
        return self._native.append_lines(format, lines, prefix, uuid.uuid4().hex if salt is None else salt)

    def resume(self) -> shapes.Resumed:
        """Opens the session if it is new; else says what its last host left open. Durable when it returns."""
        return cast(shapes.Resumed, self._native.call("resume"))

    def give_up(self, why: str) -> Receipt:
        """Ends what was left open: calls are aborted for this reason, messages abandoned."""
        return self._native.give_up(why)

    def step(self, key: str | None = None) -> Step:
        """Begins a step of the model. The same key again begins nothing new. Durable when it returns."""
        key = uuid.uuid4().hex if key is None else key
        self._native.call("step", key=key)
        return Step(self._native, key)

    def flush(self) -> int | None:
        """Applies everything that is pending from the next context on, at any cost; the seq, or None."""
        return cast("int | None", self._native.call("flush"))

    # Ask

    def view(self, at: shapes.At | None = None) -> View:
        """A frozen view at the head, or at any earlier moment; no replay.

        >>> import acpdb, tempfile
        >>> with acpdb.open(tempfile.mkdtemp()) as store:
        ...     session = store.session("s1")
        ...     first = session.append(acpdb.Entry.message("user", "one"))
        ...     _ = session.append(acpdb.Entry.message("user", "two"))
        ...     [len(session.view(at).context()["items"]) for at in (first.last_seq, None)]
        [1, 2]
        """
        return View(self._native.view(at))

    @overload
    def context(
        self, *, at: shapes.At | None = None, layer: Literal["current", "recorded"] = "current", last: int | None = None
    ) -> shapes.Context: ...

    @overload
    def context(
        self, *, format: shapes.Format, at: shapes.At | None = None, model: str | None = None
    ) -> bytes: ...

    def context(
        self,
        *,
        format: shapes.Format | None = None,
        at: shapes.At | None = None,
        layer: Literal["current", "recorded"] = "current",
        last: int | None = None,
        model: str | None = None,
    ) -> shapes.Context | bytes:
        """The current context as data; with `format` the body of a request as bytes. Records nothing: see `Step.context`."""
        view = self.view(at)
        return view.context(layer=layer, last=last) if format is None else view.export(format, model=model)

    def history(
        self,
        *,
        at: shapes.At | None = None,
        file: str | None = None,
        tool: str | None = None,
        filter: str = "",
        limit: int | None = None,
    ) -> list[shapes.ItemRow]:
        """Everything that ever was, oldest first; see `View.history`."""
        return self.view(at).history(file=file, tool=tool, filter=filter, limit=limit)

    def chain(self, item: str, *, at: shapes.At | None = None) -> shapes.Chain:
        """An item and what superseded it, oldest first."""
        return self.view(at).chain(item)

    def explain(self, item: str, *, at: shapes.At | None = None) -> shapes.Explained:
        """Why an item is in the context, or is not."""
        return self.view(at).explain(item)

    def search(
        self,
        *patterns: str,
        at: shapes.At | None = None,
        filter: str = "",
        regex: bool = False,
        word: bool = False,
        case: bool = False,
        lines: int = 0,
        limit: int = 1000,
    ) -> shapes.Found:
        """Items whose texts hold all patterns."""
        return self.view(at).search(
            *patterns, filter=filter, regex=regex, word=word, case=case, lines=lines, limit=limit
        )

    def todos(self, *, at: shapes.At | None = None) -> shapes.Todos:
        """The todo list."""
        return self.view(at).todos()

    def memory(self, *, at: shapes.At | None = None, all: bool = False) -> list[shapes.MemoryRow]:
        """What the session, its project and the user are to remember; with `all` everything that they ever were told, and `standing`
        says what holds."""
        return self.view(at).memory(all=all)

    def records(self, *, at: shapes.At | None = None, after: int = 0) -> list[tuple[int, bytes]]:
        """The host's own records on the active branch, byte for byte, each with its seq; see `Entry.of_record` and
        `Entry.host_record`."""
        return self.view(at).records(after=after)

    def export(
        self,
        format: shapes.ExportFormat,
        *,
        at: shapes.At | None = None,
        selection: shapes.Selection = "current",
        model: str | None = None,
        synthetic_results: bool = False,
        server_side: bool = False,
    ) -> bytes:
        """The session as the body of a request, a transcript, a page (`html`) or spans (`otlp`)."""
        return self.view(at).export(
            format,
            selection=selection,
            model=model,
            synthetic_results=synthetic_results,
            server_side=server_side,
        )

    # Act

    def discard(self, *targets: str) -> shapes.ActReply:
        """Hides items: all targets or none. A target is an item (`#12`), the id of a call, or its hash."""
        return cast(shapes.ActReply, self._native.call("discard", targets=targets))

    def distill(self, summaries: Mapping[str, str]) -> shapes.ActReply:
        """Hides items, each behind its summary."""
        return cast(shapes.ActReply, self._native.call("distill", summaries=as_object(summaries)))

    def restore(self, *targets: str, pin: bool = False) -> shapes.ActReply:
        """Shows items again; with `pin` the rules leave them alone."""
        return cast(shapes.ActReply, self._native.call("restore", targets=targets, pin=pin))

    def context_tool(self, call: Mapping[str, shapes.Json]) -> shapes.ActReply:
        """Runs a call of the context tool as a model makes it: `{"action": .., "targets": [[target, summary?], ..]}`."""
        return cast(shapes.ActReply, self._native.call("context_tool", call=as_object(call)))

    def pin(self, *targets: str) -> shapes.ActReply:
        """Keeps items from the rules."""
        return cast(shapes.ActReply, self._native.call("pin", targets=targets))

    def unpin(self, *targets: str) -> shapes.ActReply:
        """Leaves items to the rules again."""
        return cast(shapes.ActReply, self._native.call("unpin", targets=targets))

    def rewind(self, to: int) -> shapes.ActReply:
        """Goes back to a seq: what came after leaves the context and stays in the log. `last_seq` is None if nothing came after it.

        For another point in time: `session.rewind(session.view("t12").seq)`.
        """
        return cast(shapes.ActReply, self._native.call("rewind", to=to))

    def fork(self, key: str | None = None, *, at: shapes.At | None = None, title: str | None = None) -> Session:
        """Begins a session that continues this one from a point in time; nothing is copied. Without a key it gets this one's, with a number.

        >>> import acpdb, tempfile
        >>> with acpdb.open(tempfile.mkdtemp()) as store:
        ...     session = store.session("s1")
        ...     first = session.append(acpdb.Entry.message("user", "one"))
        ...     _ = session.append(acpdb.Entry.message("user", "two"))
        ...     fork = session.fork(at=first.last_seq)
        ...     _ = fork.append(acpdb.Entry.message("user", "three"))
        ...     (fork.key, [item["output"]["text"] for item in fork.context()["items"]])
        ('s1-fork-1', ['one', 'three'])
        """
        return Session(self._native.fork(key, at, title))

    def update_tasks(self, tasks: Iterable[Mapping[str, shapes.Json]]) -> shapes.ActReply:
        """Changes tasks, as an agent asks for it: `[{"id": .., "status": ..}, ..]`."""
        return cast(shapes.ActReply, self._native.call("update_tasks", tasks=[as_object(task) for task in tasks]))

    # Remember

    def remember(self, entry: Entry) -> shapes.MemoryReceipt:
        """Remembers what `Entry.memory` says. An equal value is confirmed, and a preference's new value takes the old one's place.

        >>> import acpdb, tempfile
        >>> with acpdb.open(tempfile.mkdtemp()) as store:
        ...     session = store.session("s1", project="shop")
        ...     _ = session.remember(acpdb.Entry.memory("npm", kind="preference", key="package_manager"))
        ...     _ = session.remember(acpdb.Entry.memory("pnpm", kind="preference", key="package_manager"))
        ...     [row["value"] for row in session.memory()]
        ...     [(row["value"], row["standing"]) for row in session.memory(all=True)]
        ['pnpm']
        [('npm', 'superseded'), ('pnpm', 'current')]
        """
        return cast(shapes.MemoryReceipt, self._native.remember(entry))

    def retract(self, item: str, *, reason: str | None = None) -> shapes.MemoryReceipt:
        """The memory item no longer holds, and nothing takes its place."""
        return cast(shapes.MemoryReceipt, self._native.call("retract", item=item, reason=reason))

    def reinforce(self, item: str) -> shapes.MemoryReceipt:
        """The memory item was confirmed."""
        return cast(shapes.MemoryReceipt, self._native.call("reinforce", item=item))

    def supersede(self, old: str, new: str, *, reason: str | None = None) -> shapes.MemoryReceipt:
        """One memory item takes the place of another."""
        return cast(shapes.MemoryReceipt, self._native.call("supersede", old=old, new=new, reason=reason))

    def restore_memory(self, item: str) -> shapes.MemoryReceipt:
        """The memory item holds again."""
        return cast(shapes.MemoryReceipt, self._native.call("restore_memory", item=item))

    def __eq__(self, other: object) -> bool:
        """Whether it is the same session of the same store."""
        return isinstance(other, Session) and self._native.same_as(other._native)

    def __hash__(self) -> int:
        return hash((self.host, self.key))

    def _repr_html_(self) -> str:
        """The session as a page, for notebooks."""
        return self.view()._repr_html_()

    def __repr__(self) -> str:
        return f"<acpdb.Session {self.key!r} of {self.host!r}>"
