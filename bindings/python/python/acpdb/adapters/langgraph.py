"""LangGraph: a checkpointer over acpdb, sync and async.

```python
graph = builder.compile(checkpointer=AcpdbSaver(store))
```

The log is the truth: each checkpoint, write and deletion is one event of the thread's session, in order, and what the saver answers
from is folded from them. A value is recorded as what changed. Threads of a process do not wait for each other, and several processes
share threads.
"""

from __future__ import annotations

import asyncio
import random
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from threading import Lock
from typing import Any, cast

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

from .. import HeadMovedError, InvalidError, Session, Store
from ._threads import Maker, Name, Saved, Thread

HOST = "langgraph"
#: Threads that are held in memory; others are read again.
HELD_MAX = 256

Record = dict[str, Any]


class AcpdbSaver(BaseCheckpointSaver[str]):
    """Checkpoints of threads in an acpdb store."""

    def __init__(self, store: Store, *, serde: SerializerProtocol | None = None) -> None:
        super().__init__(serde=serde)
        self.store = store
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
        with thread.lock:
            thread.catch_up()
            checkpoints = thread.spaces.get(space, {})
            asked = get_checkpoint_id(config)
            id = asked or max(checkpoints, default="")
            if id not in checkpoints:
                return None
            return self._tuple(thread, space, id, config if asked else None)

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
                        found = self._matching(thread, of, checkpoint, filter or {})
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

        def decide() -> Record | None:
            if parent is not None and (space, parent) in thread.deleted:
                thread.deleted.add((space, checkpoint["id"]))
                return None
            kept = [(channel, version, blobs[channel]) for channel, version in new_versions.items()]
            record: Record = {"op": "put", "ns": space, "id": checkpoint["id"], "parent": parent, "blobs": kept}
            return record | {"checkpoint": saved, "metadata": meta}

        self._record(thread, decide)
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

        def decide() -> Record | None:
            known = thread.writes.get((space, id), {})
            new = [(*it, task_path) for it in given if it[0] < 0 or (task_id, it[0]) not in known]
            if not new or (space, id) in thread.deleted | thread.dropped:
                return None
            return {"op": "writes", "ns": space, "id": id, "task": task_id, "writes": new}

        self._record(thread, decide)

    def delete_thread(self, thread_id: str) -> None:
        """Deletes a thread: what is put late on one of its checkpoints does not bring it back."""
        thread = self._thread(str(thread_id))
        self._record(thread, lambda: {"op": "delete"} if thread.is_recorded else None)

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Deletes the checkpoints of these runs, with their writes, in all threads."""
        gone = {str(run) for run in run_ids}
        for thread in map(self._thread, self._threads() if gone else ()):

            def decide(thread: Thread = thread) -> Record | None:
                return _drop(
                    (space, id)
                    for space, checkpoints in thread.spaces.items()
                    for id, saved in checkpoints.items()
                    if str(self._load(thread, saved.metadata).get("run_id")) in gone
                )

            self._record(thread, decide)

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Keeps the latest checkpoint of each namespace, or none (`delete`).

        Checkpoints stay, too, if a channel that has no value of its own in the latest may be made from their writes.
        """
        if strategy not in ("keep_latest", "delete"):
            raise InvalidError(f"strategy is 'keep_latest' or 'delete', not {strategy!r}")
        for thread in (self._thread(str(id)) for id in thread_ids):
            if strategy == "delete":
                self.delete_thread(thread.session.key)
                continue

            def decide(thread: Thread = thread) -> Record | None:
                needed = {space: self._needed(thread, space) for space in thread.spaces}
                return _drop((space, id) for space, ids in needed.items() for id in thread.spaces[space] if id not in ids)

            self._record(thread, decide)

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copies all checkpoints of a thread, with their writes, as one event."""
        source, target = self._thread(str(source_thread_id)), self._thread(str(target_thread_id))
        with source.lock:
            source.catch_up()
            records = [*_whole(source)]
        self._record(target, lambda: {"op": "thread", "records": records} if records else None)

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

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        await asyncio.to_thread(self.copy_thread, source_thread_id, target_thread_id)

    # What both need.

    def _record(self, thread: Thread, decide: Callable[[], Record | None]) -> None:
        """Records what is decided of a thread as it is, and decides again if another writer came between. Other threads are not waited for."""
        with thread.lock:
            while True:
                thread.catch_up()
                record = decide()
                if record is None:
                    return
                maker = Maker(thread)
                try:
                    return thread.record(maker, _made(record, maker))
                except HeadMovedError:
                    continue

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

    def _needed(self, thread: Thread, space: str) -> set[str]:
        """The latest checkpoint, and those before it back to where each of its channels has a value."""
        checkpoints = thread.spaces[space]
        latest = max(checkpoints, default="")
        needed: set[str] = set()
        lacking: set[str] | None = None
        for id in [latest, *_ancestors(checkpoints, latest)] if latest else []:
            versions = self._load(thread, checkpoints[id].checkpoint)["channel_versions"]
            lacking = set(versions) if lacking is None else lacking
            lacking -= {it for it in lacking if self._blob(thread, space, it, versions.get(it)) is not None}
            needed.add(id)
            if not lacking:
                break
        return needed


def _whole(thread: Thread) -> Iterator[Record]:
    """A thread as it is, in records that fold to it; parents first."""
    for space, checkpoints in thread.spaces.items():
        blobs = [
            (channel, version, thread.typed(name)) for (of, channel, version), name in thread.blobs.items() if of == space
        ]
        for id, saved in sorted(checkpoints.items()):
            record: Record = {"op": "put", "ns": space, "id": id, "parent": saved.parent, "blobs": blobs}
            yield record | {"checkpoint": thread.typed(saved.checkpoint), "metadata": thread.typed(saved.metadata)}
            blobs = []
            for (task, index), (channel, name, path) in thread.writes.get((space, id), {}).items():
                writes = [(index, channel, thread.typed(name), path)]
                yield {"op": "writes", "ns": space, "id": id, "task": task, "writes": writes}


def _made(record: Record, maker: Maker) -> Record:
    """The record with its values as what changed."""
    space = record.get("ns", "")
    match record["op"]:
        case "put":
            blobs = [[of, version, maker.piece(it, (space, "channel", of))] for of, version, it in record["blobs"]]
            checkpoint = maker.piece(record["checkpoint"], (space, "checkpoint", ""))
            return {**record, "blobs": blobs, "checkpoint": checkpoint, "metadata": maker.piece(record["metadata"], (space, "metadata", ""))}
        case "writes":
            return {**record, "writes": [[index, of, maker.piece(it), path] for index, of, it, path in record["writes"]]}
        case "thread":
            return {**record, "records": [_made(part, maker) for part in record["records"]]}
        case _:
            return record


def _drop(ids: Iterator[tuple[str, str]]) -> Record | None:
    gone = [[*id] for id in ids]
    return {"op": "drop", "ids": gone} if gone else None


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
