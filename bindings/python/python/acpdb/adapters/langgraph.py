"""LangGraph: a checkpointer over acpdb, and a store of long-term memory, sync and async.

```python
graph = builder.compile(checkpointer=AcpdbSaver(store), store=AcpdbStore(store))
```

The log is the truth: each checkpoint, write and deletion is one event of the thread's session, in order, and what the saver answers
from is folded from them. A value is recorded as what changed. Threads of a process do not wait for each other, and several processes
share threads.
"""

from __future__ import annotations

import asyncio
import builtins
import random
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial
from threading import Lock
from typing import Any, TypeVar, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    get_checkpoint_id,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from .. import BusyError, CorruptError, HeadMovedError, InvalidError, Session, Store, TooLargeError
from ._langgraph_store import AcpdbStore
from ._threads import Maker, Name, Saved, Thread

__all__ = ["AcpdbSaver", "AcpdbStore"]

HOST = "langgraph"
#: Threads that are held in memory; others are read again.
HELD_MAX = 256
#: So many bytes that were erased are worth packing the log.
FREED_BYTES_MIN = 256 << 10
#: Channels of the framework's own, whose values are used up in the next step: none is made from earlier writes.
FLEETING = ("__start__", "branch:to:")

Record = dict[str, Any]
T = TypeVar("T")


class AcpdbSaver(BaseCheckpointSaver[str]):
    """Checkpoints of threads in an acpdb store.

    With `erase=False` what is pruned and deleted stays in the log, for an audit.
    """

    def __init__(self, store: Store, *, serde: SerializerProtocol | None = None, erase: bool = True) -> None:
        super().__init__(serde=serde)
        self.store = store
        self.erase = erase
        self._freed = 0
        self._held: OrderedDict[str, Thread] = OrderedDict()
        self._lock = Lock()

    def session(self, thread_id: str) -> Session:
        """The session of a thread."""
        return self.store.session(str(thread_id), host=HOST)

    def get_next_version(self, current: str | None, channel: None) -> str:
        """Versions of branches that went apart differ, too."""
        number = 0 if current is None else int(str(current).split(".")[0])
        return f"{number + 1:012}.{random.getrandbits(32):08x}"

    # Questions: catch up with the log, then answer from what was folded.

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        thread, space = self._thread(_id(config)), _space(config)

        def found() -> CheckpointTuple | None:
            checkpoints = thread.spaces.get(space, {})
            asked = get_checkpoint_id(config)
            id = asked or max(checkpoints, default="")
            return self._tuple(thread, space, id, config if asked else None) if id in checkpoints else None

        with thread.lock:
            return _answer(thread, found)

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Checkpoints, thread by thread, the newest first. Each is read when it is asked for."""
        left = limit
        end = get_checkpoint_id(before) if before else None
        only = get_checkpoint_id(config) if config else None
        space = config["configurable"].get("checkpoint_ns") if config else None
        for id in [_id(config)] if config else self._threads():
            thread = self._thread(id)
            with thread.lock:
                thread.catch_up()
                spaces = {of: sorted(checkpoints, reverse=True) for of, checkpoints in thread.spaces.items()}
            for of in spaces if space is None else [space]:
                for checkpoint in spaces.get(of, []):
                    if (only and checkpoint != only) or (end and checkpoint >= end):
                        continue
                    if left is not None and left <= 0:
                        return
                    with thread.lock:
                        found = _answer(thread, lambda: self._matching(thread, of, checkpoint, filter or {}))
                    if found is not None:
                        left = None if left is None else left - 1
                        yield found

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """For each channel the nearest value before a checkpoint, and the writes since then."""
        thread, space = self._thread(_id(config)), _space(config)
        with thread.lock:
            thread.catch_up()
            checkpoints = thread.spaces.get(space, {})
            id = get_checkpoint_id(config) or max(checkpoints, default="")
            found: dict[str, DeltaChannelHistory] = {channel: {"writes": []} for channel in channels}
            lacking = set(channels)
            for before in _ancestors(checkpoints, id):
                if not lacking:
                    break
                versions = self._load(thread, checkpoints[before].checkpoint)["channel_versions"]
                for task, channel, value in reversed(self._writes(thread, space, before)):
                    if channel in lacking:
                        found[channel]["writes"].insert(0, (task, channel, value))
                for channel in [*lacking]:
                    blob = self._blob(thread, space, channel, versions.get(channel))
                    if blob is not None:
                        found[channel]["seed"] = self._load(thread, blob)
                        lacking.discard(channel)
            return found

    # Commands: one event each, durable when they return.

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Records a checkpoint. One of a thread that was deleted meanwhile is not: the thread stays deleted."""
        thread, space, parent = self._thread(_id(config)), _space(config), get_checkpoint_id(config)
        values = checkpoint["channel_values"]
        blobs = {
            channel: self.serde.dumps_typed(values[channel]) if channel in values else ("empty", b"")
            for channel in new_versions
        }
        saved = self.serde.dumps_typed({key: value for key, value in checkpoint.items() if key != "channel_values"})
        meta = self.serde.dumps_typed(get_checkpoint_metadata(config, metadata))

        def decide() -> Iterator[Record]:
            if parent is not None and (space, parent) in thread.deleted:
                thread.deleted.add((space, checkpoint["id"]))
                return
            kept = [(channel, version, blobs[channel]) for channel, version in new_versions.items()]
            record: Record = {"op": "put", "ns": space, "id": checkpoint["id"], "parent": parent, "blobs": kept}
            yield record | {"checkpoint": saved, "metadata": meta}

        self._record(thread, decide, hopes=True)
        return _config(thread, space, checkpoint["id"])

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Records writes of a task, unless their checkpoint was deleted."""
        thread, space, id = self._thread(_id(config)), _space(config), config["configurable"]["checkpoint_id"]
        given = [
            (WRITES_IDX_MAP.get(channel, index), channel, self.serde.dumps_typed(value))
            for index, (channel, value) in enumerate(writes)
        ]

        def decide() -> Iterator[Record]:
            known = thread.writes.get((space, id), {})
            new = [(*it, task_path) for it in given if it[0] < 0 or (task_id, it[0]) not in known]
            if new and (space, id) not in thread.deleted | thread.dropped:
                yield {"op": "writes", "ns": space, "id": id, "task": task_id, "writes": new}

        self._record(thread, decide, hopes=True)

    def delete_thread(self, thread_id: str) -> None:
        """Deletes a thread: what is put late on one of its checkpoints does not bring it back."""
        thread = self._thread(str(thread_id))
        self._delete(thread)
        self._give_back([thread])

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Deletes the checkpoints of these runs, with their writes, in all threads."""
        runs = {str(run) for run in run_ids}

        def gone(thread: Thread) -> set[tuple[str, str]]:
            return {
                (space, id)
                for space, checkpoints in thread.spaces.items()
                for id, saved in checkpoints.items()
                if str(self._load(thread, saved.metadata).get("run_id")) in runs
            }

        self._drop([*map(self._thread, self._threads() if runs else ())], gone)

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Keeps the latest checkpoint of each namespace, or none (`delete`).

        Checkpoints stay, too, if a channel that has no value of its own in the latest may be made from their writes.
        """
        if strategy not in ("keep_latest", "delete"):
            raise InvalidError(f"strategy is 'keep_latest' or 'delete', not {strategy!r}")
        threads = [self._thread(str(id)) for id in thread_ids]
        if strategy == "delete":
            for thread in threads:
                self._delete(thread)
            return self._give_back(threads)

        def gone(thread: Thread) -> set[tuple[str, str]]:
            needed = {space: self._needed(thread, space) for space in thread.spaces}
            return {(space, id) for space, ids in needed.items() for id in thread.spaces[space] if id not in ids}

        self._drop(threads, gone)

    def expire(self, older_than: timedelta, *, strategy: str = "delete") -> builtins.list[str]:
        """Prunes the threads that nothing was put on for so long; their ids. A host calls this from time to time."""
        end = int((time.time() - older_than.total_seconds()) * 1_000_000)
        old: builtins.list[str] = []
        for name in self.store.names():
            last = self.store.event(name["head"]) if name["host"] == HOST else None
            if last is not None and last["recorded_at"] < end:
                thread = self._thread(name["id"])
                with thread.lock:
                    thread.catch_up()
                    if any(thread.spaces.values()):
                        old.append(name["id"])
        self.prune(old, strategy=strategy)
        return old

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copies all checkpoints of a thread, with their writes, as one event."""
        source, target = self._thread(str(source_thread_id)), self._thread(str(target_thread_id))
        with source.lock:
            source.catch_up()
            records = [*self._whole(source, lambda _: True)]
        copied: Record = {"op": "thread", "records": records}
        self._record(target, lambda: [copied] if records else [])

    # The same for event loops: the disk is waited for in a thread.

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return await asyncio.to_thread(self.get_tuple, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        found = self.list(config, filter=filter, before=before, limit=limit)
        while (one := await asyncio.to_thread(next, found, None)) is not None:
            yield one

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        return await asyncio.to_thread(lambda: self.get_delta_channel_history(config=config, channels=channels))

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        return await asyncio.to_thread(self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        await asyncio.to_thread(self.put_writes, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        await asyncio.to_thread(self.delete_thread, thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        await asyncio.to_thread(self.delete_for_runs, run_ids)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        await asyncio.to_thread(lambda: self.prune(thread_ids, strategy=strategy))

    async def aexpire(self, older_than: timedelta, *, strategy: str = "delete") -> builtins.list[str]:
        return await asyncio.to_thread(lambda: self.expire(older_than, strategy=strategy))

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        await asyncio.to_thread(self.copy_thread, source_thread_id, target_thread_id)

    # What both need.

    def _record(self, thread: Thread, decide: Callable[[], Iterable[Record]], *, hopes: bool = False) -> None:
        """Records what is decided of a thread as it is, and decides again if another writer came between. Other threads are not waited for.

        What `hopes` is decided of the thread as it was known: a write that another writer overtook is refused."""
        with thread.lock:
            while True:
                if not (hopes and thread.is_known):
                    thread.catch_up()
                hopes = False
                try:
                    made = [_made(thread, record) for record in decide()]
                    if made:
                        thread.record(*made)
                    return
                except HeadMovedError:
                    continue
                except CorruptError:
                    # Another process may have erased meanwhile what it has pruned.
                    if not thread.catch_up():
                        raise

    def _delete(self, thread: Thread) -> None:
        def decide() -> Iterator[Record]:
            ids = [[space, id] for space, checkpoints in thread.spaces.items() for id in checkpoints]
            dropped = [[*it] for it in sorted(thread.dropped)]
            if ids or thread.writes:
                yield {"op": "delete", "ids": ids + dropped}

        self._record(thread, decide)

    def _drop(self, threads: Sequence[Thread], gone: Callable[[Thread], set[tuple[str, str]]]) -> None:
        """Drops checkpoints of threads. What is left is recorded anew, so that the records before can be erased."""
        for thread in threads:

            def decide(thread: Thread = thread, whole: bool = self.erase) -> Iterator[Record]:
                dropped = gone(thread)
                if not dropped:
                    return
                yield {"op": "drop", "ids": [[*id] for id in sorted(dropped)]}
                if whole:
                    # The next `keep` spends this one: the names of what went are told beside it.
                    yield {"op": "keep", "gone": [], "records": [*self._whole(thread, lambda id: id not in dropped)]}

            try:
                self._record(thread, decide)
            except TooLargeError:
                # What is left is more than one event holds: the records stay.
                self._record(thread, partial(decide, whole=False))
        self._give_back(threads)

    def _give_back(self, threads: Sequence[Thread]) -> None:
        """Erases records that nothing is made from any more, of threads as they were read last."""
        if not self.erase:
            return
        spent: set[int] = set()
        for thread in threads:
            with thread.lock:
                spent |= thread.spent
        if not spent:
            return
        try:
            report = self.store.erase_records(*spent, by=HOST, reason="the thread was pruned or deleted")
        except BusyError:
            # Another process erases: the next call has these records, too. They are deleted either way.
            return
        for thread in threads:
            with thread.lock:
                thread.spent -= spent
        with self._lock:
            self._freed += sum(hit["bytes"] for hit in report["hit"])
            if self._freed < FREED_BYTES_MIN:
                return
            self._freed = 0
        self.store.seal()

    def _thread(self, id: str) -> Thread:
        with self._lock:
            thread = self._held.pop(id, None) or Thread(self.session(id))
            self._held[id] = thread
            if len(self._held) > HELD_MAX:
                self._held.popitem(last=False)
            return thread

    def _threads(self) -> tuple[str, ...]:
        return tuple(name["id"] for name in self.store.names() if name["host"] == HOST)

    def _load(self, thread: Thread, name: Name) -> Any:
        return self.serde.loads_typed(thread.typed(name))

    def _blob(self, thread: Thread, space: str, channel: str, version: Any) -> Name | None:
        """A value that a channel has."""
        name = thread.blobs.get((space, channel, version))
        return None if name is None or thread.piece(name).kind == "empty" else name

    def _writes(self, thread: Thread, space: str, id: str) -> Sequence[tuple[str, str, Any]]:
        """Writes of a checkpoint, in the order in which a run applies them."""
        all = thread.writes.get((space, id), {}).items()
        ordered = sorted(all, key=lambda it: (it[1][2], *it[0]))
        return [(task, channel, self._load(thread, name)) for (task, _), (channel, name, _) in ordered]

    def _matching(self, thread: Thread, space: str, id: str, filter: dict[str, Any]) -> CheckpointTuple | None:
        saved = thread.spaces.get(space, {}).get(id)
        if saved is None:
            return None
        metadata = self._load(thread, saved.metadata) if filter else {}
        if any(metadata.get(key) != value for key, value in filter.items()):
            return None
        return self._tuple(thread, space, id, None)

    def _tuple(self, thread: Thread, space: str, id: str, config: RunnableConfig | None) -> CheckpointTuple:
        saved = thread.spaces[space][id]
        checkpoint = self._load(thread, saved.checkpoint)
        blobs = {channel: self._blob(thread, space, channel, it) for channel, it in checkpoint["channel_versions"].items()}
        values = {channel: self._load(thread, name) for channel, name in blobs.items() if name is not None}
        return CheckpointTuple(
            config=_config(thread, space, id) if config is None else config,
            checkpoint=cast(Checkpoint, {**checkpoint, "channel_values": values}),
            metadata=self._load(thread, saved.metadata),
            parent_config=_config(thread, space, saved.parent) if saved.parent else None,
            pending_writes=[*self._writes(thread, space, id)],
        )

    def _whole(self, thread: Thread, stays: Callable[[tuple[str, str]], bool]) -> Iterator[Record]:
        """What stays of a thread, in records that fold to it; parents first."""
        for space, checkpoints in thread.spaces.items():
            told: set[tuple[str, Any]] = set()
            for id, saved in sorted(checkpoints.items()):
                if not stays((space, id)):
                    continue
                versions = self._load(thread, saved.checkpoint)["channel_versions"]
                used = [(of, it) for of, it in versions.items() if (of, it) not in told and (space, of, it) in thread.blobs]
                blobs = [(of, it, thread.typed(thread.blobs[(space, of, it)])) for of, it in used]
                told.update(used)
                record: Record = {"op": "put", "ns": space, "id": id, "parent": saved.parent, "blobs": blobs}
                yield record | {"checkpoint": thread.typed(saved.checkpoint), "metadata": thread.typed(saved.metadata)}
                for (task, index), (channel, name, path) in thread.writes.get((space, id), {}).items():
                    writes = [(index, channel, thread.typed(name), path)]
                    yield {"op": "writes", "ns": space, "id": id, "task": task, "writes": writes}

    def _needed(self, thread: Thread, space: str) -> set[str]:
        """The latest checkpoint, and those before it back to where each of its channels has a value."""
        checkpoints = thread.spaces[space]
        latest = max(checkpoints, default="")
        needed: set[str] = set()
        lacking: set[str] | None = None
        for id in [latest, *_ancestors(checkpoints, latest)] if latest else []:
            versions = self._load(thread, checkpoints[id].checkpoint)["channel_versions"]
            lacking = {it for it in versions if not it.startswith(FLEETING)} if lacking is None else lacking
            lacking -= {it for it in lacking if self._blob(thread, space, it, versions.get(it)) is not None}
            needed.add(id)
            if not lacking:
                break
        return needed


def _made(thread: Thread, record: Record) -> tuple[Record, bytes]:
    """The record with its values as what changed, and the bytes that are new."""
    # What is kept is made from nothing before it.
    maker = Maker(Thread(thread.session) if record["op"] == "keep" else thread)
    return _pieces(record, maker), maker.fresh


def _pieces(record: Record, maker: Maker) -> Record:
    space = record.get("ns", "")
    match record["op"]:
        case "put":
            blobs = [[of, version, maker.piece(it, (space, "channel", of))] for of, version, it in record["blobs"]]
            checkpoint = maker.piece(record["checkpoint"], (space, "checkpoint", ""))
            return {**record, "blobs": blobs, "checkpoint": checkpoint, "metadata": maker.piece(record["metadata"], (space, "metadata", ""))}
        case "writes":
            return {**record, "writes": [[index, of, maker.piece(it), path] for index, of, it, path in record["writes"]]}
        case "thread" | "keep":
            return {**record, "records": [_pieces(part, maker) for part in record["records"]]}
        case _:
            return record


def _answer(thread: Thread, work: Callable[[], T]) -> T:
    """Answers from a thread as the log has it now."""
    thread.catch_up()
    try:
        return work()
    except CorruptError:
        # Another process may have erased meanwhile what it has pruned.
        if not thread.catch_up():
            raise
        return work()


def _ancestors(checkpoints: Mapping[str, Saved], id: str) -> Iterator[str]:
    """The checkpoints before one, the nearest first."""
    parent = checkpoints[id].parent if id in checkpoints else None
    while parent is not None and parent in checkpoints:
        yield parent
        parent = checkpoints[parent].parent


def _id(config: RunnableConfig) -> str:
    """The thread's id as a text; hosts also give numbers and UUIDs."""
    return str(config["configurable"]["thread_id"])


def _space(config: RunnableConfig) -> str:
    return str(config["configurable"].get("checkpoint_ns", ""))


def _config(thread: Thread, space: str, id: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread.session.key, "checkpoint_ns": space, "checkpoint_id": id}}
