"""Records of a framework on the active branch of a session: what all adapters share.

An id that a framework gives to a call names it for a moment only: models use ids again, in the next answer, in the next run, or
twice in one answer. So a call is known by its place. The log pairs the n-th call of an id with its n-th end, and what stands in
for an output is asked for by the event that ended the call.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from threading import RLock
from typing import Any

from .. import Entry, HeadMovedError, NotFoundError, Receipt, Session
from .._view import View

#: What a record says of calls: `("call", id)`, `("end", id)`; anything else, such as `("turn", "")`, ends an answer of the model.
Use = tuple[str, str]


def dumped(value: Any) -> str:
    """A record as it is kept: compact, with its own characters. What JSON has no character for is escaped, as JSON does."""
    try:
        return _json(value, ensure_ascii=False)
    except ValueError:
        value = _finite(value)
    try:
        return _json(value, ensure_ascii=False)
    except UnicodeEncodeError:
        return _json(value, ensure_ascii=True)


def _json(value: Any, *, ensure_ascii: bool) -> str:
    made = json.dumps(value, ensure_ascii=ensure_ascii, allow_nan=False, separators=(",", ":"), default=str)
    made.encode()
    return made


def _finite(value: Any) -> Any:
    """The same with a text for each number that JSON has none for."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(one) for one in value]
    return value


def whole(said: str) -> str:
    """A text whose characters are whole: halves of surrogate pairs are replaced. The record beside it has them."""
    try:
        said.encode()
        return said
    except UnicodeEncodeError:
        return said.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def text(content: Any) -> str:
    """The text of a content: of its parts that have one, in order."""
    if isinstance(content, str):
        return content
    if isinstance(content, (list, tuple)):
        parts = [part if isinstance(part, str) else part.get("text") for part in content if isinstance(part, (str, Mapping))]
        return "\n".join(str(part) for part in parts if part)
    return "" if content is None else dumped(content)


# Facts. None of them is refused for a text of the framework.


def kept(record: Any, what: str) -> Entry:
    """A record that says nothing to the context."""
    return Entry.host_record(whole(what)).of_record(dumped(record))


def said(role: str, content: Any) -> Entry:
    """A message."""
    return Entry.message(role, whole(text(content)))


def started(name: str, tool: Any, params: Any) -> Entry:
    """A call begins. Parameters are as the model wrote them; what is no JSON is a text in an object."""
    if params is None:
        params = {}
    if isinstance(params, str):
        try:
            json.loads(params)
            params.encode()
        except ValueError:
            params = dumped({"arguments": params})
    else:
        params = dumped(params)
    return Entry.tool_started(name, whole(str(tool or "tool")), params)


def ended(name: str, output: Any, *, failed: bool = False) -> Entry:
    """A call ends."""
    shown = whole(text(output))
    return Entry.tool_finished(name, error=shown) if failed else Entry.tool_finished(name, shown)


def decided(session: Session, decide: Callable[[], tuple[int, Sequence[Entry]]]) -> Receipt | None:
    """Appends what is decided of the session as it was read: the seq of that view, and the facts. If another writer came between, it is
    read and decided again. None if there is nothing to append."""
    while True:
        head, entries = decide()
        if not entries:
            return None
        try:
            return session.append_expecting(head, *entries)
        except HeadMovedError:
            continue


class Calls:
    """Names of calls in the log: ids of the framework, as long as these tell open calls apart."""

    def __init__(self) -> None:
        self._open: dict[str, list[tuple[int, str]]] = {}
        self._taken: set[str] = set()
        self._answer = 0
        self._is_answering = False

    def name(self, use: Use) -> str:
        """The name of a call that begins or ends."""
        kind, id = use
        if kind == "call":
            return self._begin(id)
        self._is_answering = False
        return self._end(id) if kind == "end" else ""

    def _begin(self, id: str) -> str:
        if not self._is_answering:
            self._answer, self._is_answering = self._answer + 1, True
        base = whole(id) or "call"
        name, number = base, 1
        while name in self._taken:
            number += 1
            name = f"{base}~{number}"
        self._taken.add(name)
        self._open.setdefault(id, []).append((self._answer, name))
        return name

    def _end(self, id: str) -> str:
        """Of the newest answer that left calls of this id open, the first."""
        waiting = self._open.get(id)
        if not waiting:
            return whole(id) or "call"
        place = next(at for at, (answer, _) in enumerate(waiting) if answer == waiting[-1][0])
        _, name = waiting.pop(place)
        self._taken.discard(name)
        return name


class History:
    """The records on the active branch of a session, read as far as they are new, and the names of their calls."""

    def __init__(self, session: Session, uses: Callable[[Any], Iterable[Use]]) -> None:
        self.session = session
        self.lock = RLock()
        #: How often everything was read anew, since the session went back to an earlier point.
        self.restarts = 0
        self._uses = uses
        self._rewinds = 0
        self._forget()

    def _forget(self) -> None:
        self._known: list[tuple[int, Any]] = []
        self._calls = Calls()
        self._last = 0

    def read(self) -> tuple[list[tuple[int, Any]], View | None]:
        """The records, oldest first, each with its seq; and the view that has them, if the session is there."""
        with self.lock:
            try:
                view = self.session.view()
            except NotFoundError:
                return [], None
            if view.rewind_count() != self._rewinds:
                self._forget()
                self._rewinds = view.rewind_count()
                self.restarts += 1
            for seq, raw in view.records(after=self._last):
                record = json.loads(raw)
                self._known.append((seq, record))
                self._name(self._calls, record)
            self._last = max(self._last, view.seq)
            return list(self._known), view

    def entries(self, records: Sequence[Any], make: Callable[[Any, list[str]], list[Entry]]) -> list[Entry]:
        """Facts of records that are to be appended. `make` is given the names of the calls that begin and end in each."""
        with self.lock:
            self.read()
            calls = deepcopy(self._calls)
            return [entry for record in records for entry in make(record, self._name(calls, record))]

    def _name(self, calls: Calls, record: Any) -> list[str]:
        names = [(use, calls.name(use)) for use in self._uses(record)]
        return [name for (kind, _), name in names if kind in ("call", "end")]

    def clear(self) -> None:
        """Goes back to before the first record. What was there stays in the log."""
        known, _ = self.read()
        if known:
            self.session.rewind(known[0][0] - 1)

    def pop(self) -> Any | None:
        """Goes back to before the last record, and gives it; None if there is none."""
        with self.lock:
            known, _ = self.read()
            if not known:
                return None
            seq, record = known[-1]
            self.session.rewind(seq - 1)
            return record


def load(session: Session, after: int = 0) -> list[tuple[int, Any]]:
    """The records, oldest first, each with its seq; nothing for a session that is not there yet."""
    try:
        return [(seq, json.loads(raw)) for seq, raw in session.records(after=after)]
    except NotFoundError:
        return []


def clear(session: Session) -> None:
    """Goes back to before the first record. What was there stays in the log."""
    known = load(session)
    if known:
        session.rewind(known[0][0] - 1)
