"""LangGraph's own suite for checkpointers, and that the log is the truth."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import acpdb
from acpdb.adapters.langgraph import AcpdbSaver
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.conformance import checkpointer_test, validate


def test_what_the_suite_asks_holds(tmp_path: Path) -> None:
    numbers = iter(range(10_000))

    @checkpointer_test(name="acpdb")
    async def saver() -> AsyncGenerator[AcpdbSaver, None]:
        with acpdb.open(tmp_path / str(next(numbers))) as store:
            yield AcpdbSaver(store)

    report = asyncio.run(validate(saver))
    report.print_report()
    assert report.passed_all_base()


def test_another_saver_sees_what_the_log_holds(store: acpdb.Store) -> None:
    one, other = AcpdbSaver(store), AcpdbSaver(store)
    config = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    checkpoint = {**empty_checkpoint(), "channel_values": {"x": [1]}, "channel_versions": {"x": "1"}}
    made = one.put(config, checkpoint, {"source": "input", "step": -1, "parents": {}}, {"x": "1"})
    one.put_writes(made, [("x", 2)], "task")
    found = other.get_tuple(config)
    assert found is not None and found.checkpoint["channel_values"] == {"x": [1]}
    assert found.pending_writes == [("task", "x", 2)]
    assert [tuple_.config for tuple_ in other.list(None)] == [made]
    other.delete_thread("t")
    assert one.get_tuple(config) is None and AcpdbSaver(store).get_tuple(config) is None
    assert [row["kind"] for row in (store.event(seq) for seq in range(1, store.head() + 1)) if row][-3:] == [
        "host_recorded"
    ] * 3
