"""LangGraph: a checkpointer over acpdb, sync and async.

```python
graph = builder.compile(checkpointer=AcpdbSaver(store))
```

The log is the truth: each checkpoint, write and deletion is one event of the thread's session, in order, and what the saver
answers from is folded from them. So several processes share threads, and every state of a thread can be made again.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Iterator, Sequence
from threading import RLock
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
)
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.base import SerializerProtocol

from .. import InvalidError, Session, Store
from . import _records

HOST = "langgraph"


class AcpdbSaver(InMemorySaver):
    """Checkpoints of threads in an acpdb store."""

    def __init__(self, store: Store, *, serde: SerializerProtocol | None = None) -> None:
        super().__init__(serde=serde)
        self.store = store
        self._folded: dict[str, int] = {}
        self._lock = RLock()

    def session(self, thread_id: str) -> Session:
        """The session of a thread."""
        return self.store.session(str(thread_id), host=HOST)

    # Questions: catch up with the log, then answer from what was folded.

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        config = _named(config)
        with self._lock:
            self._catch_up(_thread(config))
            return super().get_tuple(config)

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        config = _named(config) if config else config
        with self._lock:
            threads = [_thread(config)] if config else self._threads()
            for thread in threads:
                self._catch_up(thread)
            found = [*super().list(config, filter=filter, before=before, limit=limit)]
        yield from found

    def get_delta_channel_history(self, *, config: RunnableConfig, channels: Sequence[str]) -> Any:
        config = _named(config)
        with self._lock:
            self._catch_up(_thread(config))
            return super().get_delta_channel_history(config=config, channels=channels)

    # Commands: one event each, durable when they return.

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        config = _named(config)
        with self._lock:
            thread = _thread(config)
            self._catch_up(thread)
            made = super().put(config, checkpoint, metadata, new_versions)
            space = config["configurable"]["checkpoint_ns"]
            blobs = [
                [channel, version, _packed(self.blobs[(thread, space, channel, version)])]
                for channel, version in new_versions.items()
            ]
            saved, meta, parent = self.storage[thread][space][checkpoint["id"]]
            record = {"op": "put", "ns": space, "id": checkpoint["id"], "parent": parent, "blobs": blobs}
            record |= {"checkpoint": _packed(saved), "metadata": _packed(meta)}
            self._record(thread, record)
            return made

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        config = _named(config)
        with self._lock:
            thread = _thread(config)
            self._catch_up(thread)
            super().put_writes(config, writes, task_id, task_path)
            space, id = config["configurable"].get("checkpoint_ns", ""), config["configurable"]["checkpoint_id"]
            kept = [
                [key[1], channel, _packed(value), path]
                for key, (task, channel, value, path) in self.writes[(thread, space, id)].items()
                if task == task_id
            ]
            self._record(thread, {"op": "writes", "ns": space, "id": id, "task": task_id, "writes": kept})

    def delete_thread(self, thread_id: str) -> None:
        with self._lock:
            thread = str(thread_id)
            self._catch_up(thread)
            super().delete_thread(thread)
            if thread in self._folded:
                self._record(thread, {"op": "delete"})

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Deletes the checkpoints of these runs, with their writes, in all threads."""
        gone = {str(run) for run in run_ids}
        with self._lock:
            for thread in self._threads() if gone else ():
                self._catch_up(thread)
                self._drop(
                    thread,
                    [
                        [space, id]
                        for space, checkpoints in self.storage.get(thread, {}).items()
                        for id, (_, metadata, _) in checkpoints.items()
                        if str(self.serde.loads_typed(metadata).get("run_id")) in gone
                    ],
                )

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Keeps the latest checkpoint of each namespace, or none (`delete`).

        Checkpoints stay, too, if a channel that has no value of its own in the latest may be made from their writes.
        """
        if strategy not in ("keep_latest", "delete"):
            raise InvalidError(f"strategy is 'keep_latest' or 'delete', not {strategy!r}")
        with self._lock:
            for thread in map(str, thread_ids):
                if strategy == "delete":
                    self.delete_thread(thread)
                    continue
                self._catch_up(thread)
                spaces = self.storage.get(thread, {})
                needed = {space: self._needed(thread, space) for space in spaces}
                self._drop(thread, [[space, id] for space in spaces for id in spaces[space] if id not in needed[space]])

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copies all checkpoints of a thread, with their writes, in one commit."""
        with self._lock:
            source, target = str(source_thread_id), str(target_thread_id)
            self._catch_up(source)
            records = [*self._records(source)]
            if records:
                kept = [_records.kept(record, f"checkpoint_{record['op']}") for record in records]
                self.session(target).append(*kept)

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
        def found() -> tuple[CheckpointTuple, ...]:
            return (*self.list(config, filter=filter, before=before, limit=limit),)

        for one in await asyncio.to_thread(found):
            yield one

    async def aget_delta_channel_history(self, *, config: RunnableConfig, channels: Sequence[str]) -> Any:
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

    # The fold.

    def _threads(self) -> tuple[str, ...]:
        return tuple(name["id"] for name in self.store.names() if name["host"] == HOST)

    def _has_value(self, thread: str, space: str, channel: str, version: Any) -> bool:
        return self.blobs.get((thread, space, channel, version), ("empty", b""))[0] != "empty"

    def _needed(self, thread: str, space: str) -> set[str]:
        """The latest checkpoint, and those before it back to where each of its channels has a value."""
        checkpoints = self.storage[thread][space]
        needed: set[str] = set()
        lacking: set[str] | None = None
        id: str | None = max(checkpoints, default=None)
        while id in checkpoints and lacking != set():
            saved, _, parent = checkpoints[id]
            versions = self.serde.loads_typed(saved)["channel_versions"]
            lacking = set(versions) if lacking is None else lacking
            lacking -= {it for it in lacking if self._has_value(thread, space, it, versions.get(it))}
            needed.add(id)
            id = parent
        return needed

    def _drop(self, thread: str, ids: Sequence[Sequence[str]]) -> None:
        if ids:
            self._record(thread, {"op": "drop", "ids": ids})
            self._catch_up(thread)

    def _records(self, thread: str) -> Iterator[dict[str, Any]]:
        """A thread as it is, in records that fold to it; parents first."""
        for space, checkpoints in self.storage.get(thread, {}).items():
            blobs = [
                [channel, version, _packed(blob)]
                for (of, within, channel, version), blob in self.blobs.items()
                if (of, within) == (thread, space)
            ]
            for id, (saved, metadata, parent) in sorted(checkpoints.items()):
                record = {"op": "put", "ns": space, "id": id, "parent": parent, "blobs": blobs}
                yield record | {"checkpoint": _packed(saved), "metadata": _packed(metadata)}
                blobs = []
                tasks: dict[str, list[list[Any]]] = {}
                for (task, index), (_, channel, value, path) in self.writes.get((thread, space, id), {}).items():
                    tasks.setdefault(task, []).append([index, channel, _packed(value), path])
                for task, writes in tasks.items():
                    yield {"op": "writes", "ns": space, "id": id, "task": task, "writes": writes}

    def _record(self, thread: str, record: dict[str, Any]) -> None:
        # What is folded already is folded again by the next question: it says the same.
        self.session(thread).append(_records.kept(record, f"checkpoint_{record['op']}"))

    def _catch_up(self, thread: str) -> None:
        for seq, record in _records.load(self.session(thread), self._folded.get(thread, 0)):
            self._fold(thread, record)
            self._folded[thread] = seq

    def _fold(self, thread: str, record: dict[str, Any]) -> None:
        match record["op"]:
            case "put":
                for channel, version, blob in record["blobs"]:
                    self.blobs[(thread, record["ns"], channel, version)] = _unpacked(blob)
                saved = (_unpacked(record["checkpoint"]), _unpacked(record["metadata"]), record["parent"])
                self.storage[thread][record["ns"]][record["id"]] = saved
            case "writes":
                known = self.writes[(thread, record["ns"], record["id"])]
                for index, channel, value, path in record["writes"]:
                    known[(record["task"], index)] = (record["task"], channel, _unpacked(value), path)
            case "delete":
                super().delete_thread(thread)
            case "drop":
                for space, id in record["ids"]:
                    self.storage[thread][space].pop(id, None)
                    self.writes.pop((thread, space, id), None)
            case _:
                pass  # Written by a newer version: kept in the log.


def _named(config: RunnableConfig) -> RunnableConfig:
    """The same with a text as the thread's id; hosts also give numbers and UUIDs."""
    return {**config, "configurable": {**config["configurable"], "thread_id": _thread(config)}}


def _thread(config: RunnableConfig) -> str:
    return str(config["configurable"]["thread_id"])


def _packed(value: tuple[str, bytes]) -> list[str]:
    """A serialised value as JSON has it: text where it is text."""
    kind, raw = value
    return [kind, base64.b64encode(raw).decode()]


def _unpacked(value: Any) -> tuple[str, bytes]:
    kind, raw = value
    return kind, base64.b64decode(raw)
