"""LangGraph's own suite for checkpointers, and that the log is the truth."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import acpdb
import pytest
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
    told = {name: (it.detected, it.tests_passed, it.tests_failed, it.tests_skipped) for name, it in report.results.items()}
    assert report.passed_all() and len(told) == 8, told
    assert all(found and passed >= 5 and failed == skipped == 0 for found, passed, failed, skipped in told.values()), told
    assert sum(passed for _, passed, _, _ in told.values()) >= 80, told


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


def test_a_thread_named_by_a_number_is_the_one_named_by_its_digits(store: acpdb.Store) -> None:
    """The framework's own saver takes any value as `thread_id`; a number was recorded under one name and looked for under another."""
    saver = AcpdbSaver(store)
    checkpoint = {**empty_checkpoint(), "channel_values": {"x": 1}, "channel_versions": {"x": "1"}}
    made = saver.put({"configurable": {"thread_id": 7, "checkpoint_ns": ""}}, checkpoint, {"source": "input"}, {"x": "1"})
    saver.put_writes({"configurable": {**made["configurable"], "thread_id": 7}}, [("x", 2)], "task")
    for thread in (7, "7"):
        for one in (saver, AcpdbSaver(store)):
            found = one.get_tuple({"configurable": {"thread_id": thread}})
            assert found is not None and found.checkpoint["channel_values"] == {"x": 1} and len(found.pending_writes) == 1
            assert len([*one.list({"configurable": {"thread_id": thread}})]) == 1


def grown(saver: AcpdbSaver, thread: str, values: list[dict[str, int]]) -> list[str]:
    """A chain of checkpoints; each has a new version of both channels, and values for those that are given."""
    config = {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}
    for number, value in enumerate(values):
        versions = {"kept": f"{number:03}", "grown": f"{number:03}"}
        checkpoint = {**empty_checkpoint(), "channel_values": value, "channel_versions": versions}
        metadata = {"source": "loop", "step": number, "parents": {}, "run_id": f"run-{number % 2}"}
        config = saver.put(config, checkpoint, metadata, versions)
        saver.put_writes(config, [("grown", number)], f"task-{number}")
    return [str(it.config["configurable"]["checkpoint_id"]) for it in reversed([*saver.list({"configurable": {"thread_id": thread}})])]


def told(saver: AcpdbSaver, thread: str) -> list[object]:
    found = saver.list({"configurable": {"thread_id": thread}})
    return [(it.checkpoint["id"], it.checkpoint["channel_values"], it.metadata, it.pending_writes) for it in found]


def test_what_is_copied_pruned_and_deleted_is_so_for_every_saver_and_stays_in_the_log(store: acpdb.Store) -> None:
    saver = AcpdbSaver(store)
    ids = grown(saver, "a", [{"kept": 1, "grown": 1}, {"kept": 2}, {"kept": 3}])
    saver.copy_thread("a", "b")
    assert told(saver, "b") == told(AcpdbSaver(store), "b") == told(saver, "a")
    # The channel `grown` has no value in the latest: what it is made from stays.
    grown(saver, "c", [{"kept": 1, "grown": 1}, {"kept": 1, "grown": 5}, {"kept": 2}, {"kept": 3}])
    saver.prune(["c"])
    history = saver.get_delta_channel_history(config={"configurable": {"thread_id": "c"}}, channels=["grown"])["grown"]
    assert (history["seed"], [value for _, _, value in history["writes"]]) == (5, [1, 2])
    assert len(told(saver, "c")) == 3 and told(AcpdbSaver(store), "c") == told(saver, "c")
    saver.delete_for_runs(["run-1"])
    assert [row[0] for row in told(saver, "a")] == [ids[2], ids[0]]
    assert told(AcpdbSaver(store), "a") == told(saver, "a")
    saver.prune(["b"], strategy="delete")
    assert told(AcpdbSaver(store), "b") == []
    assert len(saver.session("b").records()) == 8, "three checkpoints, three writes, and what was dropped"
    with pytest.raises(acpdb.InvalidError, match="keep_latest"):
        saver.prune(["a"], strategy="everything")
    assert store.verify(deep=True)["verdict"] == "sound"
