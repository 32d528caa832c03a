"""LangGraph's long-term memory: a `BaseStore` over the memory of a project, in the form that the package for Node keeps to as well."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from threading import RLock
from typing import Any

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
)

from .. import Entry, InvalidError, NotFoundError, RejectedError, Store
from . import _records

#: Of the categories that preferences have.
CATEGORY = "other"
#: Longer names of items are told by their digest; the item has them whole.
KEY_BYTES_MAX = 256
#: The part of its time that an item has to have lost, until a read gives it all of it again.
REFRESHED_SHARE = 1 / 16
MINUTE = 60_000_000

Namespace = tuple[str, ...]
Place = tuple[Namespace, str]


@dataclass(frozen=True)
class _Kept:
    """An item as it is remembered."""

    id: str
    value: dict[str, Any]
    created: int
    updated: int
    #: Minutes that it lives after its last use, and that use.
    ttl: float | None
    used: int

    def ends(self) -> float:
        return float("inf") if self.ttl is None else self.used + self.ttl * MINUTE


class AcpdbStore(BaseStore):
    """Items of namespaces in the memory of a project.

    Each is a memory item, so that `store.memory(project=.., all=True)` has what it was before, and `acpdb memory` shows it. Several processes
    may share a store; of two puts on one key the later one holds.
    """

    supports_ttl = True

    def __init__(self, store: Store, *, project: str = "langgraph", ttl: TTLConfig | None = None) -> None:
        self.store = store
        self.project = project
        self.ttl_config = ttl
        self._lock = RLock()
        self._head = -1
        self._kept: dict[Place, _Kept] = {}

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Answers questions as of before the batch, and then records what it puts."""
        given = [*ops]
        with self._lock:
            self._catch_up()
            results = [self._answer(op) for op in given]
            puts = {(op.namespace, op.key): op for op in given if isinstance(op, PutOp)}
            for place, op in puts.items():
                self._put(place, op)
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        given = [*ops]
        return await asyncio.to_thread(self.batch, given)

    def sweep(self) -> int:
        """Forgets items whose time is over; how many. Reads pass over them before, too."""
        with self._lock:
            self._catch_up()
            over = [place for place, kept in self._kept.items() if kept.ends() <= _now()]
            return sum(map(self._forget_over, over))

    # Questions.

    def _answer(self, op: Op) -> Result:
        match op:
            case GetOp():
                place = (op.namespace, op.key)
                kept = self._living().get(place)
                if kept is None:
                    return None
                self._touch(place, kept, op.refresh_ttl)
                return Item(namespace=place[0], key=place[1], **_told(kept))
            case SearchOp():
                return [*self._search(op)]
            case ListNamespacesOp():
                return self._namespaces(op)
            case PutOp():
                return None
        raise InvalidError(f"there is no operation {type(op).__name__}")

    def _search(self, op: SearchOp) -> Iterable[SearchItem]:
        begin = op.namespace_prefix
        found = [
            (place, kept)
            for place, kept in self._living().items()
            if place[0][: len(begin)] == begin
            and all(_matches(kept.value.get(name), asked) for name, asked in (op.filter or {}).items())
        ]
        scores: dict[Place, float] = {}
        words = {*(op.query or "").lower().split()}
        if words:
            for place, kept in found:
                text = json.dumps(kept.value, ensure_ascii=False).lower()
                scores[place] = sum(word in text for word in words) / len(words)
            found.sort(key=lambda one: -scores[one[0]])
        for place, kept in found[op.offset : op.offset + op.limit]:
            self._touch(place, kept, op.refresh_ttl)
            yield SearchItem(namespace=place[0], key=place[1], score=scores.get(place) or None, **_told(kept))

    def _namespaces(self, op: ListNamespacesOp) -> list[Namespace]:
        all = {namespace for namespace, _ in self._living()}
        named = {namespace for namespace in all if all_match(op.match_conditions or (), namespace)}
        cut = {namespace[: op.max_depth] if op.max_depth else namespace for namespace in named}
        return sorted(cut)[op.offset : op.offset + op.limit]

    def _living(self) -> dict[Place, _Kept]:
        now = _now()
        return {place: kept for place, kept in self._kept.items() if kept.ends() > now}

    # The memory.

    def _catch_up(self) -> None:
        head = self.store.memory_head(project=self.project)
        if head == self._head:
            return
        rows = self.store.memory(project=self.project)
        kept: dict[Place, _Kept] = {}
        for row in rows:
            it = _read(row["value"] or "")
            if it is None:
                continue
            place = (tuple(it["namespace"]), it["key"])
            used = max(it["used"], _micros(row["reinforced"]))
            kept[place] = _Kept(row["id"], it["value"], it["created"], it["updated"], it["ttl"], used)
        self._kept = dict(sorted(kept.items(), key=lambda one: one[1].created))
        self._head = head

    def _put(self, place: Place, op: PutOp) -> None:
        if op.value is None:
            return self._forget(place)
        now = _now()
        before = self._kept.get(place)
        alive = before is not None and before.ends() > now
        created = before.created if before is not None and alive else now
        self._remember(place, _Kept("", dict(op.value), created, now, op.ttl, now))

    def _touch(self, place: Place, kept: _Kept, refresh: bool) -> None:
        """Gives an item its time again that was read."""
        now = _now()
        if refresh and kept.ttl is not None and now - kept.used >= kept.ttl * MINUTE * REFRESHED_SHARE:
            # Its value is not put again: another process may have put a newer one.
            self.store.reinforce(kept.id, project=self.project)
            self._kept[place] = replace(kept, used=now)

    def _remember(self, place: Place, kept: _Kept) -> None:
        told = {
            "namespace": [*place[0]],
            "key": place[1],
            "value": kept.value,
            "created": kept.created,
            "updated": kept.updated,
            "ttl": kept.ttl,
            "used": kept.used,
        }
        entry = Entry.memory(_records.dumped(told), kind="preference", key=_name(place), category=CATEGORY)
        receipt = self.store.remember(entry, project=self.project)
        # What JSON has no form for is a text from now on, as another process reads it.
        value = json.loads(_records.dumped(kept.value))
        self._kept[place] = _Kept(receipt["id"], value, kept.created, kept.updated, kept.ttl, kept.used)

    def _forget(self, place: Place) -> None:
        try:
            self._retract(place)
        except (NotFoundError, RejectedError):
            # Another process forgot it, or put another one.
            self._head = -1
            self._catch_up()
            self._retract(place)

    def _forget_over(self, place: Place) -> bool:
        """Forgets an item whose time was over when it was read; whether it still was that one."""
        try:
            self._retract(place)
        except (NotFoundError, RejectedError):
            # Another process forgot it, or put it anew: that one may live.
            self._head = -1
            return False
        return True

    def _retract(self, place: Place) -> None:
        kept = self._kept.get(place)
        if kept is not None:
            self.store.retract(kept.id, project=self.project)
            del self._kept[place]


def _now() -> int:
    return time.time_ns() // 1000


def _micros(time: str | None) -> int:
    """A time as the memory tells it."""
    return 0 if time is None else round(datetime.fromisoformat(time.replace("Z", "+00:00")).timestamp() * 1_000_000)


def _time(micros: int) -> datetime:
    return datetime.fromtimestamp(micros / 1_000_000, timezone.utc)


def _told(kept: _Kept) -> dict[str, Any]:
    return {"value": kept.value, "created_at": _time(kept.created), "updated_at": _time(kept.updated)}


def _read(value: str) -> dict[str, Any] | None:
    """What a memory item says of an item; the project may remember other things, too."""
    try:
        it = json.loads(value)
    except ValueError:
        return None
    is_item = isinstance(it, dict) and {"namespace", "key", "value", "created", "updated", "ttl", "used"} <= it.keys()
    return it if is_item else None


def _name(place: Place) -> str:
    """The key of a place in the memory."""
    name = _records.dumped([*place[0], place[1]])
    return name if len(name.encode()) <= KEY_BYTES_MAX else f"sha256:{hashlib.sha256(name.encode()).hexdigest()}"


def all_match(conditions: Iterable[MatchCondition], namespace: Namespace) -> bool:
    """Whether a namespace meets all conditions."""

    def holds(condition: MatchCondition) -> bool:
        path, own = condition.path, namespace
        if condition.match_type == "suffix":
            path, own = path[::-1], own[::-1]
        return len(own) >= len(path) and all(asked in ("*", name) for asked, name in zip(path, own))

    return all(map(holds, conditions))


OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "$eq": lambda one, other: bool(one == other),
    "$ne": lambda one, other: bool(one != other),
    "$gt": lambda one, other: float(one) > float(other),
    "$gte": lambda one, other: float(one) >= float(other),
    "$lt": lambda one, other: float(one) < float(other),
    "$lte": lambda one, other: float(one) <= float(other),
}


def _matches(value: Any, asked: Any) -> bool:
    """Whether a value is as a filter asks."""
    if isinstance(asked, dict):
        if any(name.startswith("$") for name in asked):
            return all(_compared(value, name, other) for name, other in asked.items())
        return isinstance(value, dict) and all(_matches(value.get(name), inner) for name, inner in asked.items())
    if isinstance(asked, (list, tuple)):
        is_list = isinstance(value, (list, tuple)) and len(value) == len(asked)
        return is_list and all(_matches(one, other) for one, other in zip(value, asked))
    return bool(value == asked)


def _compared(value: Any, operator: str, other: Any) -> bool:
    if operator not in OPERATORS:
        raise InvalidError(f"there is no operator {operator}; there are {', '.join(OPERATORS)}")
    try:
        return OPERATORS[operator](value, other)
    except (TypeError, ValueError):
        # What is no number is neither more nor less than one.
        return False
