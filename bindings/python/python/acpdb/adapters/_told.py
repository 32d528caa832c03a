"""Conversations that a framework tells whole with each request: what of them is new, and what stands in for old outputs.

```text
told     [prompt, call, output, call, output]       a list that grows, begins anew, or lost its beginning
known     prompt  call  output                      marks in the log, one for each unit
new                            call  output         recorded, each once
```

A unit is known by its place: a list that continues the one before is known as far as that went. Where it does not, the longest
common order of both says what is known. The prompt of a new run is new, whatever it says.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from threading import Lock
from typing import Any, Literal

from .. import Entry, Session
from . import _records

#: Sessions that are held in memory.
HELD_MAX = 256

Mark = dict[str, str]
Kind = Literal["system", "user", "assistant", "call", "end", "other"]


@dataclass(frozen=True)
class Unit:
    """A prompt, a text of the model, a call, or the end of a call."""

    kind: Kind
    make: Callable[[str], Entry]
    """The fact, given the name of its call."""
    says: object = None
    """What tells it from others. Of an end it is nothing: its call does, and its output may have been replaced."""
    id: str = ""
    """The framework's id of a call."""
    begins: bool = False
    """The first of an answer of the model: a step begins."""

    def mark(self) -> Mark:
        """What the log keeps of it, to know it again."""
        mark: Mark = {"unit": self.kind}
        if self.kind in ("call", "end"):
            mark["id"] = self.id
        if self.kind != "end":
            mark["is"] = blake2b(repr((self.says, self.id)).encode(errors="replace"), digest_size=12).hexdigest()
        return mark


def _uses(mark: Any) -> list[_records.Use]:
    """What a mark says of calls. A record of somebody else says nothing."""
    kind = mark.get("unit") if isinstance(mark, dict) else None
    if kind in ("call", "end"):
        return [(kind, str(mark.get("id", "")))]
    return [("turn", "")] if kind == "user" else []


class Told:
    """What was told of one session."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._history = _records.History(session, _uses)
        self._restarts = 0
        self._before: list[Any] | None = None
        self._at: list[int | None] = []

    def tell(self, units: Sequence[Unit], *, begins: bool | None = None) -> dict[int, str]:
        """Records what is new. Gives what stands in for outputs that are not shown whole, by their places in `units`.

        `begins` says whether a run begins with this list; None if the framework does not know.
        """
        with self._history.lock:
            known, view = self._history.read()
            if self._restarts != self._history.restarts:
                self._restarts, self._before = self._history.restarts, None
            marks = [unit.mark() for unit in units]
            at = self._known([mark for _, mark in known], marks, [unit.kind for unit in units], begins)
            fresh = [place for place, where in enumerate(at) if where is None]
            if fresh:
                self._record([units[place] for place in fresh], [marks[place] for place in fresh])
                after = len(known)
                known, view = self._history.read()
                for place in fresh:
                    where = next((n for n in range(after, len(known)) if known[n][1] == marks[place]), None)
                    at[place], after = where, after if where is None else where + 1
            self._before, self._at = marks, at
            replaced = view.replaced() if view is not None else {}
        ends = [(place, where) for place, where in enumerate(at) if where is not None and units[place].kind == "end"]
        return {place: replaced[known[where][0]] for place, where in ends if known[where][0] in replaced}

    def answered(self, units: Sequence[Unit]) -> None:
        """Records the answer to the list that was told last."""
        if not units:
            return
        with self._history.lock:
            marks = [unit.mark() for unit in units]
            known, _ = self._history.read()
            self._record(units, marks)
            if self._before is not None:
                self._before = [*self._before, *marks]
                self._at = [*self._at, *range(len(known), len(known) + len(marks))]

    def _record(self, units: Sequence[Unit], marks: list[Mark]) -> None:
        rest = iter(units)

        def make(mark: Mark, names: list[str]) -> list[Entry]:
            unit = next(rest)
            entry = unit.make(names[0] if names else "").of_record(_records.dumped(mark))
            return [Entry.step(), entry] if unit.begins else [entry]

        self.session.append(*self._history.entries(marks, make))

    def _known(self, known: list[Any], told: list[Mark], kinds: list[Kind], begins: bool | None) -> list[int | None]:
        """For each unit the record that it is, if it is known."""
        before = self._before
        continues = before is not None and told[: len(before)] == before
        at: list[int | None] = [None] * len(told)
        end = len(told)
        if begins or (begins is None and not continues):
            # The prompt of a run is new, even if it says what an earlier one said.
            while end > 0 and kinds[end - 1] == "user":
                end -= 1
        # A list that says no more than the one before is a run's that begins anew; a longer one has the prompt behind what was told.
        if before is not None and continues and (len(before) <= end or len(before) < len(told)):
            at[: len(before)] = self._at
            return at
        ends, calls = paired([_use(mark) for mark in known]), paired([_use(mark) for mark in told[:end]])
        those = [n for n in range(len(known)) if _kind(known[n]) != "end"]
        these = [n for n in range(end) if kinds[n] != "end"]
        for this, that in common([repr(told[n]) for n in these], [repr(known[n]) for n in those]):
            at[these[this]] = those[that]
        # An end is known if its call is: it may say something else by now.
        end_of = {call: place for place, call in ends.items()}
        for place, call in calls.items():
            where = at[call]
            at[place] = end_of.get(where) if where is not None else None
        return at


class Tolds:
    """What was told of sessions, by their keys. Those that were asked for longest ago are read again."""

    def __init__(self, session: Callable[[str], Session]) -> None:
        self._session = session
        self._held: dict[str, Told] = {}
        self._lock = Lock()

    def of(self, key: str) -> Told:
        """What was told of the session of a key."""
        with self._lock:
            told = self._held.pop(key, None) or Told(self._session(key))
            self._held[key] = told
            if len(self._held) > HELD_MAX:
                del self._held[next(iter(self._held))]
            return told


def paired(uses: Sequence[_records.Use]) -> dict[int, int]:
    """Places of ends, each with the place of its call."""
    calls, open_, found = _records.Calls(), dict[str, int](), dict[int, int]()
    for place, use in enumerate(uses):
        name = calls.name(use)
        if use[0] == "call":
            open_[name] = place
        elif use[0] == "end" and name in open_:
            found[place] = open_.pop(name)
    return found


def common(told: Sequence[str], known: Sequence[str]) -> list[tuple[int, int]]:
    """The longest common order of both, in pairs of places; of equals the latest known."""
    places: dict[str, list[int]] = {}
    for where, one in enumerate(known):
        places.setdefault(one, []).append(where)
    # Hunt and Szymanski, from the end: the best last step of each length.
    ends: list[int] = []
    steps: list[tuple[int, int, Any]] = []
    for place in reversed(range(len(told))):
        for where in places.get(told[place], ()):
            length = bisect_left(ends, -where)
            step = (place, where, steps[length - 1] if length else None)
            ends[length : length + 1], steps[length : length + 1] = [-where], [step]
    found: list[tuple[int, int]] = []
    last: Any = steps[-1] if steps else None
    while last is not None:
        found.append(last[:2])
        last = last[2]
    return found


def _kind(mark: Any) -> str:
    return str(mark.get("unit", "")) if isinstance(mark, dict) else ""


def _use(mark: Any) -> _records.Use:
    return next(iter(_uses(mark)), ("", ""))
