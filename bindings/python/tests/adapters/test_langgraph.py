"""LangGraph's own suite for checkpointers, and that the log is the truth."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import acpdb
import pytest
from acpdb.adapters._changes import COPY_BYTES_MIN, changes
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
    assert len(saver.session("b").records()) == 3, "the copy, what was dropped, and the deletion"
    with pytest.raises(acpdb.InvalidError, match="keep_latest"):
        saver.prune(["a"], strategy="everything")
    assert store.verify(deep=True)["verdict"] == "sound"


def test_a_value_is_recorded_as_what_changed(store: acpdb.Store) -> None:
    """The log grew with the square of the turns: each version of a channel stood in it whole."""
    saver, draw = AcpdbSaver(store), random.Random(1)
    config = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    said: list[str] = []
    turns = 100
    for turn in range(turns):
        said = [*said, *("".join(draw.choices("abcdefghij klmnop", k=800)) for _ in range(2))]
        version = saver.get_next_version(f"{turn}.", None)
        checkpoint = {**empty_checkpoint(), "channel_values": {"said": said}, "channel_versions": {"said": version}}
        config = saver.put(config, checkpoint, {"source": "loop", "step": turn, "parents": {}}, {"said": version})
        saver.put_writes(config, [("said", said[-2:])], f"task-{turn}")
    texts = sum(map(len, said))
    assert store.info()["log_bytes"] < 3 * texts, "each text once in the channel and once in the writes; it was each turn"
    found = [*AcpdbSaver(store).list({"configurable": {"thread_id": "t"}})]
    assert [it.checkpoint["channel_values"]["said"] for it in reversed(found)] == [said[: 2 * n + 2] for n in range(turns)]
    assert [it.pending_writes for it in reversed(found)] == [[(f"task-{n}", "said", said[2 * n : 2 * n + 2])] for n in range(turns)]


def test_changes_make_the_value_that_they_were_made_from() -> None:
    draw = random.Random(5)
    for _ in range(400):
        known = [draw.randbytes(draw.choice([0, 3, 100, 2000])) for _ in range(draw.randint(0, 3))]
        parts = [draw.randbytes(draw.choice([0, 1, 40]))]
        for _ in range(draw.randint(0, 4) if known else 0):
            source = draw.choice(known)
            begin = draw.randint(0, len(source))
            parts += [source[begin : draw.randint(begin, len(source))], draw.randbytes(draw.choice([0, 1, 40]))]
        new = b"".join(parts)
        steps, fresh = changes(new, known)
        made, rest = b"", fresh
        for step in steps:
            if isinstance(step, int):
                made, rest = made + rest[:step], rest[step:]
            else:
                made += known[step[0]][step[1] : step[1] + step[2]]
        assert made == new and rest == b""
    old = draw.randbytes(5000)
    steps, fresh = changes(b"\x91" + old[1:3000] + b"between" + old[3000:], [old])
    assert len(fresh) < COPY_BYTES_MIN and len(steps) <= 4


def put(saver: AcpdbSaver, config: dict[str, object], value: int) -> dict[str, object]:
    version = saver.get_next_version(str(value), None)
    checkpoint = {**empty_checkpoint(), "channel_values": {"x": value}, "channel_versions": {"x": version}}
    return saver.put(config, checkpoint, {"source": "loop", "step": value, "parents": {}}, {"x": version})


def test_a_deleted_thread_does_not_come_back(store: acpdb.Store) -> None:
    """A run that was on its way when its thread was deleted put its next checkpoints, and the thread was there again."""
    one, other = AcpdbSaver(store), AcpdbSaver(store)
    config = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    late = put(one, config, 1)
    other.delete_thread("t")
    one.put_writes(late, [("x", 2)], "task")
    later = put(one, put(one, late, 2), 3)
    one.put_writes(later, [("x", 4)], "task")
    for saver in (one, other, AcpdbSaver(store)):
        assert saver.get_tuple(config) is None and [*saver.list(None)] == []
    # A run that begins afterwards is a new one.
    put(other, config, 5)
    for saver in (one, other, AcpdbSaver(store)):
        assert [it.checkpoint["channel_values"] for it in saver.list(None)] == [{"x": 5}]


def test_threads_do_not_wait_for_each_other_and_a_list_reads_what_is_asked_for(store: acpdb.Store) -> None:
    saver = AcpdbSaver(store)
    for number in range(5):
        for value in range(3):
            put(saver, {"configurable": {"thread_id": f"t{number}", "checkpoint_ns": ""}}, value)
    with saver._thread("t0").lock:
        done = threading.Thread(target=put, args=(saver, {"configurable": {"thread_id": "t1", "checkpoint_ns": ""}}, 9))
        done.start()
        done.join(60)
        assert not done.is_alive()
    fresh = AcpdbSaver(store)
    assert len([*fresh.list(None, limit=2)]) == 2 and len(fresh._held) == 1
    assert len([*fresh.list(None)]) == 16
    found = asyncio.run(_collected(fresh, 4))
    assert [it.checkpoint["channel_values"]["x"] for it in found][:3] == [2, 1, 0] and len(found) == 4


async def _collected(saver: AcpdbSaver, limit: int) -> list[Any]:
    return [it async for it in saver.alist(None, limit=limit)]
