"""Threads of LangGraph, folded from their records.

```text
record   {"form": 2, "op": "put", .., "checkpoint": piece, "blobs": [[channel, version, piece], ..]}  \n  bytes that are new
piece    [kind, [[seq, number], ..], steps]     a value: copies from pieces of this and of earlier records, and new bytes
```

A record is named by its seq, and by 0 in itself. A record `keep` has all that is left of a thread, `drop` the names of what went before
it, and `delete` all names that are not in a `delete` before. So the records before can be erased, but for each `delete`, and until the next
one each `drop`. Values are made when they are asked for; what is held are the bytes that were new.
"""

from __future__ import annotations

import json
from collections import OrderedDict, deque
from collections.abc import Iterator
from dataclasses import dataclass
from threading import RLock
from typing import Any

from .. import CorruptError, Entry, NotFoundError, Session
from ._changes import COPY_BYTES_MIN, Step, changes

#: The record that has a piece, and the piece's number in it.
Name = tuple[int, int]
#: A value as the framework's serializer makes it.
Typed = tuple[str, bytes]
#: What a value follows: a channel, a checkpoint or a metadata of a namespace.
Line = tuple[str, str, str]

FORM = b'{"form":2,'
#: Pieces that a new value may copy from, besides the one that it follows.
RECENT_COUNT = 6
RECENT_BYTES_MAX = 64 << 10
#: Values of a thread that are held, since the next ones will follow them.
HELD_BYTES_MAX = 4 << 20


@dataclass(frozen=True)
class Piece:
    """A value by what makes it."""

    kind: str
    of: tuple[Name, ...]
    steps: tuple[Step, ...]
    fresh: bytes


@dataclass(frozen=True)
class Saved:
    """A checkpoint."""

    checkpoint: Name
    metadata: Name
    parent: str | None


class Thread:
    """The checkpoints, values and writes of one thread."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.lock = RLock()
        #: Checkpoints that were deleted with the thread, and those that were dropped from it.
        self.deleted: set[tuple[str, str]] = set()
        self.dropped: set[tuple[str, str]] = set()
        self.is_recorded = False
        #: Records that nothing is made from any more, and those that values may be made from.
        self.spent: set[int] = set()
        self._used: set[int] = set()
        #: Those that tell what was dropped, until a deletion tells it, too.
        self._drops: set[int] = set()
        self._rewinds = self._last = 0
        self._forget()

    def _forget(self) -> None:
        self.spaces: dict[str, dict[str, Saved]] = {}
        self.blobs: dict[tuple[str, str, Any], Name] = {}
        self.writes: dict[tuple[str, str], dict[tuple[str, int], tuple[str, Name, str]]] = {}
        self.latest: dict[Line, Name] = {}
        self.recent: deque[Name] = deque(maxlen=RECENT_COUNT)
        self._pieces: dict[Name, Piece] = {}
        self._held: OrderedDict[Name, bytes] = OrderedDict()
        self._held_bytes = 0

    def catch_up(self) -> bool:
        """Folds what is new in the log; whether anything was."""
        try:
            view = self.session.view()
        except NotFoundError:
            return False
        before = self._last
        if view.rewind_count() != self._rewinds:
            self._forget()
            self.deleted, self.dropped, self._last = set(), set(), 0
            self.spent, self._used, self._drops = set(), set(), set()
            self._rewinds = view.rewind_count()
        for seq, raw in view.records(after=self._last):
            header, _, fresh = raw.partition(b"\n")
            # Records of another form are kept in the log.
            if header.startswith(FORM):
                self._take(seq, json.loads(header), fresh)
        self._last = max(self._last, view.seq)
        return self._last > before

    @property
    def is_known(self) -> bool:
        """Whether the log was read before: what is recorded rests on that, unless another writer came since."""
        return self._last > 0

    def record(self, *made: tuple[dict[str, Any], bytes]) -> None:
        """Records what was made, each with its bytes that are new, if the thread is as it was known, and folds it."""
        entries = (
            Entry.host_record(f"checkpoint_{it['op']}", FORM + json.dumps(it, separators=(",", ":")).encode()[1:] + b"\n" + fresh)
            for it, fresh in made
        )
        self._last = self.session.append_expecting(self._last, *entries).last_seq
        for seq, (it, fresh) in enumerate(made, self._last - len(made) + 1):
            self._take(seq, it, fresh)

    def _take(self, seq: int, record: dict[str, Any], fresh: bytes) -> None:
        self._fold(_Reader(self, seq, fresh), record)
        # A deletion alone tells the names of what went: with it erased, what is put late would bring it back.
        if record["op"] != "delete":
            (self._drops if record["op"] == "drop" else self._used).add(seq)
        self.is_recorded = True

    def typed(self, name: Name) -> Typed:
        """A value."""
        return self.piece(name).kind, self.whole(name)

    def piece(self, name: Name) -> Piece:
        piece = self._pieces.get(name)
        if piece is None:
            raise CorruptError(f"a value of thread {self.session.key} is made from #{name[0]}, which was erased or cannot be read")
        return piece

    def whole(self, name: Name) -> bytes:
        """The bytes of a value, made from its pieces."""
        if name in self._held:
            return self._held[name]
        out: list[bytes] = []
        # What is left to make, the next at the end: bytes, or a part of a piece.
        rest: list[bytes | tuple[Name, int, int | None]] = [(name, 0, None)]
        while rest:
            part = rest.pop()
            if isinstance(part, bytes):
                out.append(part)
            elif part[0] in self._held:
                begin, length = part[1:]
                out.append(self._held[part[0]][begin : None if length is None else begin + length])
            else:
                rest += reversed([*_parts(self.piece(part[0]), *part[1:])])
        return b"".join(out)

    def hold(self, name: Name) -> bytes:
        """As `whole`; the next value will ask for it again."""
        if name in self._held:
            self._held.move_to_end(name)
            return self._held[name]
        made = self._held[name] = self.whole(name)
        self._held_bytes += len(made)
        while self._held_bytes > HELD_BYTES_MAX and len(self._held) > 1:
            _, left = self._held.popitem(last=False)
            self._held_bytes -= len(left)
        return made

    def keep(self, name: Name, piece: Piece, line: Line | None) -> None:
        """A piece was recorded."""
        self._pieces[name] = piece
        if line is not None:
            self.latest[line] = name
        self.recent.append(name)

    def _spend(self) -> None:
        self.spent |= self._used
        self._used = set()
        self._forget()

    def _fold(self, reader: _Reader, record: dict[str, Any]) -> None:
        space = record.get("ns", "")
        match record["op"]:
            case "put":
                for channel, version, piece in record["blobs"]:
                    self.blobs[(space, channel, version)] = reader.take(piece, (space, "channel", channel))
                checkpoint = reader.take(record["checkpoint"], (space, "checkpoint", ""))
                metadata = reader.take(record["metadata"], (space, "metadata", ""))
                self.spaces.setdefault(space, {})[record["id"]] = Saved(checkpoint, metadata, record["parent"])
                # As a copy that is made again of a thread whose first copy was deleted.
                self.deleted.discard((space, record["id"]))
                self.dropped.discard((space, record["id"]))
            case "writes":
                known = self.writes.setdefault((space, record["id"]), {})
                for index, channel, piece, path in record["writes"]:
                    known[(record["task"], index)] = (channel, reader.take(piece, None), path)
            case "thread":
                for part in record["records"]:
                    self._fold(reader, part)
            case "delete":
                # The records that told of them may have been erased since.
                told = {(of, id) for of, id in record.get("ids", ())}
                self.deleted |= told | self.dropped | {(of, id) for of, checkpoints in self.spaces.items() for id in checkpoints}
                self._used |= self._drops
                self.dropped, self._drops = set(), set()
                self._spend()
            case "keep":
                self.dropped |= {(of, id) for of, id in record["gone"]}
                self._spend()
                for part in record["records"]:
                    self._fold(reader, part)
            case "drop":
                for of, id in record["ids"]:
                    self.spaces.get(of, {}).pop(id, None)
                    self.writes.pop((of, id), None)
                    self.dropped.add((of, id))
            case _:
                pass  # Written by a newer version: kept in the log.


class _Reader:
    """Takes the pieces of a record in their order."""

    def __init__(self, thread: Thread, seq: int, fresh: bytes) -> None:
        self._thread, self._seq, self._fresh = thread, seq, fresh
        self._at = self._count = 0

    def take(self, piece: Any, line: Line | None) -> Name:
        kind, of, steps = piece
        length = sum(step for step in steps if isinstance(step, int))
        fresh = self._fresh[self._at : self._at + length]
        name = (self._seq, self._count)
        self._at, self._count = self._at + length, self._count + 1
        names = tuple((seq or self._seq, number) for seq, number in of)
        self._thread.keep(name, Piece(kind, names, tuple(steps), fresh), line)
        return name


class Maker:
    """Makes the pieces of a record, in their order."""

    def __init__(self, thread: Thread) -> None:
        self.fresh = b""
        self._thread = thread
        self._own: list[tuple[Line | None, bytes, Piece]] = []

    def piece(self, value: Typed, line: Line | None = None) -> list[Any]:
        """A value as what changed; on a line, it follows the value before it there."""
        kind, new = value
        names = [*self._likely(line)] if len(new) >= COPY_BYTES_MIN else []
        steps, fresh = changes(new, [self._bytes(name) for name in names])
        of: list[Name] = []
        made: list[Step] = []
        for step in steps:
            if isinstance(step, int):
                made.append(step)
                continue
            name, begin = self._origin(names[step[0]], step[1], step[2])
            of += [] if name in of else [name]
            made.append([of.index(name), begin, step[2]])
        self.fresh += fresh
        self._own.append((line, new, Piece(kind, tuple(of), tuple(made), fresh)))
        return [kind, [[*name] for name in of], made]

    def _origin(self, name: Name, begin: int, length: int) -> tuple[Name, int]:
        """Where a copy comes from in the end, so that no value is made over a long chain of small copies."""
        while True:
            at = 0
            for step in (self._own[name[1]][2] if name[0] == 0 else self._thread.piece(name)).steps:
                size = step if isinstance(step, int) else step[2]
                if at <= begin and begin + length <= at + size:
                    break
                at += size
            else:
                return name, begin
            if isinstance(step, int):
                return name, begin
            piece = self._own[name[1]][2] if name[0] == 0 else self._thread.piece(name)
            name, begin = piece.of[step[0]], step[1] + begin - at

    def _likely(self, line: Line | None) -> Iterator[Name]:
        """What a value may be made from, the likeliest first."""
        own = [(0, place) for place, (of, *_) in enumerate(self._own) if line is not None and of == line]
        before = own[-1] if own else self._thread.latest.get(line) if line is not None else None
        if before is not None:
            yield before
        recent = [(0, place) for place in range(len(self._own))][-RECENT_COUNT:] + [*reversed(self._thread.recent)]
        for name in recent[:RECENT_COUNT]:
            if name != before and len(self._bytes(name)) <= RECENT_BYTES_MAX:
                yield name

    def _bytes(self, name: Name) -> bytes:
        return self._own[name[1]][1] if name[0] == 0 else self._thread.hold(name)


def _parts(piece: Piece, begin: int, length: int | None) -> Iterator[bytes | tuple[Name, int, int | None]]:
    """What a part of a piece is made from, in order."""
    end = None if length is None else begin + length
    at = fresh = 0
    for step in piece.steps:
        size = step if isinstance(step, int) else step[2]
        low, high = max(begin, at), at + size if end is None else min(end, at + size)
        if low < high:
            if isinstance(step, int):
                yield piece.fresh[fresh + low - at : fresh + high - at]
            else:
                yield piece.of[step[0]], step[1] + low - at, high - low
        at += size
        fresh += size if isinstance(step, int) else 0
