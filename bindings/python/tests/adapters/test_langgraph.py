"""LangGraph's own suite for checkpointers, and that the log is the truth."""

from __future__ import annotations

import asyncio
import json
import random
import threading
import time
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any, TypedDict

import acpdb
import pytest
from acpdb.adapters._changes import COPY_BYTES_MIN, changes
from acpdb.adapters.langgraph import AcpdbSaver, AcpdbStore
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.graph import END, START, StateGraph


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
    assert [row["kind"] for row in (store.event(seq) for seq in range(1, store.head() + 1)) if row][-4:] == [
        *["host_recorded"] * 3,
        "erased",
    ]


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


@pytest.mark.parametrize("erase", [True, False])
def test_what_is_copied_pruned_and_deleted_is_so_for_every_saver(store: acpdb.Store, erase: bool) -> None:
    saver = AcpdbSaver(store, erase=erase)
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
    kept = [json.loads(raw.partition(b"\n")[0])["op"] for _, raw in saver.session("b").records()]
    assert kept == (["delete"] if erase else ["thread", "drop", "delete"]), "without erasing, all of it stays for an audit"
    with pytest.raises(acpdb.InvalidError, match="keep_latest"):
        saver.prune(["a"], strategy="everything")
    assert store.verify(deep=True)["verdict"] == "sound"


def test_a_value_is_recorded_as_what_changed(store: acpdb.Store) -> None:
    """The log grew with the square of the turns: each version of a channel stood in it whole."""
    saver, draw = AcpdbSaver(store), random.Random(1)
    count = 100
    said = turns(saver, "t", count, draw)
    texts = sum(map(len, said))
    assert store.info()["log_bytes"] < 3 * texts, "each text once in the channel and once in the writes; it was each turn"
    found = [*AcpdbSaver(store).list({"configurable": {"thread_id": "t"}})]
    assert [it.checkpoint["channel_values"]["said"] for it in reversed(found)] == [said[: 2 * n + 2] for n in range(count)]
    assert [it.pending_writes for it in reversed(found)] == [[(f"task-{n}", "said", said[2 * n : 2 * n + 2])] for n in range(count)]


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


def turns(saver: AcpdbSaver, thread: str, count: int, draw: random.Random) -> list[str]:
    """A thread that grows by 1.6 kB of texts a turn."""
    config: dict[str, Any] = {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}
    said: list[str] = []
    for turn in range(count):
        said = [*said, *("".join(draw.choices("abcdefghij klmnop", k=800)) for _ in range(2))]
        version = saver.get_next_version(f"{turn}.", None)
        checkpoint = {**empty_checkpoint(), "channel_values": {"said": said}, "channel_versions": {"said": version}}
        config = saver.put(config, checkpoint, {"source": "loop", "step": turn, "parents": {}}, {"said": version})
        saver.put_writes(config, [("said", said[-2:])], f"task-{turn}")
    return said


def test_what_is_pruned_and_deleted_gives_its_space_back(store: acpdb.Store) -> None:
    """112 MB stayed 112 MB after a deletion."""
    saver, draw = AcpdbSaver(store), random.Random(2)
    said = turns(saver, "t", 200, draw)
    other = turns(saver, "other", 5, draw)
    saver.copy_thread("other", "copy")
    saver.copy_thread("other", "again")
    before = store.info()["log_bytes"]
    saver.prune(["t"])
    pruned = store.info()["log_bytes"]
    # What is left is one value: the texts of all turns.
    assert pruned < sum(map(len, said)) * 1.2 < before / 2
    for one in (saver, AcpdbSaver(store)):
        (left,) = one.list({"configurable": {"thread_id": "t"}})
        assert left.checkpoint["channel_values"]["said"] == said and left.pending_writes[0][2] == said[-2:]
    saver.delete_thread("t")
    saver.prune(["copy"], strategy="delete")
    assert store.info()["log_bytes"] < 100_000
    assert not any(said[7].encode() in file.read_bytes() for file in Path(store.path).rglob("*") if file.is_file())
    for thread in ("other", "again"):
        assert len(told(AcpdbSaver(store), thread)) == 5 and told(AcpdbSaver(store), thread)[0][1] == {"said": other}
    assert told(AcpdbSaver(store), "t") == told(AcpdbSaver(store), "copy") == []
    # The same thread again, also with the same content.
    assert turns(saver, "t", 5, random.Random(2)) == said[:10] == AcpdbSaver(store).get_tuple(
        {"configurable": {"thread_id": "t"}}
    ).checkpoint["channel_values"]["said"]
    saver.copy_thread("other", "copy")
    assert told(AcpdbSaver(store), "copy") == told(saver, "other")
    assert store.verify(deep=True)["verdict"] == "sound"


def test_of_a_graphs_thread_the_latest_checkpoint_is_kept(store: acpdb.Store) -> None:
    """Channels that the framework empties in each step seemed to be made from earlier writes, and all of a run was kept."""

    class State(TypedDict):
        said: list[str]

    builder = StateGraph(State)
    builder.add_node("answer", lambda state: {"said": [*state["said"], "yes"]})
    builder.add_edge(START, "answer")
    builder.add_edge("answer", END)
    config: Any = {"configurable": {"thread_id": "t"}}
    graph = builder.compile(checkpointer=AcpdbSaver(store))
    for _ in range(3):
        graph.invoke({"said": ["well?"]}, config)
    AcpdbSaver(store).prune(["t"])
    assert len([*graph.get_state_history(config)]) == 1
    assert graph.get_state(config).values == {"said": ["well?", "yes"]}
    assert graph.invoke({"said": ["and?"]}, config) == {"said": ["and?", "yes"]}


def test_another_process_goes_on_where_a_thread_was_pruned(store: acpdb.Store) -> None:
    one, other, draw = AcpdbSaver(store), AcpdbSaver(store), random.Random(3)
    config: dict[str, Any] = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    for number in range(30):
        saver = draw.choice([one, other])
        config = put(saver, config, number)
        saver.put_writes(config, [("x", number)], "task")
        if draw.random() < 0.3:
            draw.choice([one, other]).prune(["t"])
        for found in (one.get_tuple({"configurable": {"thread_id": "t"}}), AcpdbSaver(store).get_tuple(config)):
            assert found is not None and found.checkpoint["channel_values"] == {"x": number}
            assert found.pending_writes == [("task", "x", number)]


def test_a_thread_that_was_deleted_and_erased_does_not_come_back(store: acpdb.Store) -> None:
    """Its records are gone, and with them the names of its checkpoints: the deletion has to tell them."""
    config: dict[str, Any] = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    late = put(AcpdbSaver(store), config, 1)
    AcpdbSaver(store).delete_thread("t")
    saver = AcpdbSaver(store)
    saver.put_writes(put(saver, late, 2), [("x", 2)], "task")
    assert saver.get_tuple(config) is None and [*AcpdbSaver(store).list(None)] == []


def test_what_went_first_does_not_come_back_after_more_of_it_went(store: acpdb.Store) -> None:
    """The second deletion erased the first one, and with it the names of what that one had deleted. Prunings did the same."""
    config: dict[str, Any] = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    late = []
    for value in (1, 5, 6):
        late.append(put(AcpdbSaver(store), config, value))
        AcpdbSaver(store).delete_thread("t")
    last = config
    for value in (7, 8, 9):
        late.append(last := put(AcpdbSaver(store), last, value))
        AcpdbSaver(store).prune(["t"])
    # Writes on what was pruned are none.
    before = AcpdbSaver(store).session("t").view().seq
    for of in late[:-1]:
        AcpdbSaver(store).put_writes(of, [("x", 2)], "task")
    assert AcpdbSaver(store).session("t").view().seq == before
    AcpdbSaver(store).delete_thread("t")
    for of in late:
        saver = AcpdbSaver(store)
        saver.put_writes(put(saver, of, 2), [("x", 2)], "task")
        assert [*AcpdbSaver(store).list(None)] == [], of
    assert store.verify(deep=True)["verdict"] == "sound"


def test_a_thread_that_was_copied_again_after_its_deletion_goes_on(store: acpdb.Store) -> None:
    """Its checkpoints have the names of those that were deleted: what was put on them was passed over without a word."""
    saver = AcpdbSaver(store)
    source = put(saver, {"configurable": {"thread_id": "source", "checkpoint_ns": ""}}, 1)
    on_copy: Any = {"configurable": {**source["configurable"], "thread_id": "copy"}}
    for prune in (False, True):
        saver.copy_thread("source", "copy")
        if prune:
            put(saver, on_copy, 2)
            saver.prune(["copy"])
        saver.delete_thread("copy")
    saver.copy_thread("source", "copy")
    AcpdbSaver(store).put_writes(on_copy, [("x", 2)], "task")
    put(AcpdbSaver(store), on_copy, 3)
    for one in (saver, AcpdbSaver(store)):
        later, first = one.list({"configurable": {"thread_id": "copy"}})
        assert later.checkpoint["channel_values"] == {"x": 3} and first.pending_writes == [("task", "x", 2)]


def test_records_of_another_languages_saver_are_passed_over(store: acpdb.Store) -> None:
    """Both had one form, with other fields, and a thread that the other one had put on could not be read."""
    saver = AcpdbSaver(store)
    node = b'{"form":"js","op":"put","ns":"","id":"1","checkpoint":[[],[]],"metadata":[[],[]],"values":[]}\n'
    saver.session("t").append(acpdb.Entry.host_record("checkpoint_put", node))
    config: dict[str, Any] = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    assert saver.get_tuple(config) is None
    put(saver, config, 1)
    assert [row[1] for row in told(AcpdbSaver(store), "t")] == [{"x": 1}]


def test_threads_that_are_old_expire(store: acpdb.Store) -> None:
    saver = AcpdbSaver(store)
    for thread in ("a", "b"):
        put(saver, {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}, 1)
    assert saver.expire(timedelta(days=1)) == []
    assert saver.expire(timedelta(seconds=-60)) == ["a", "b"]
    assert saver.expire(timedelta(seconds=-60)) == [] and [*AcpdbSaver(store).list(None)] == []


def test_puts_of_different_threads_share_flushes(store: acpdb.Store) -> None:
    """One lock stood across the flush: 32 threads put as many a second as one."""
    saver = AcpdbSaver(store)
    at_once = most = 0
    lock = threading.Lock()
    append = acpdb.Session.append_expecting

    def watched(self: acpdb.Session, head: int, *entries: acpdb.Entry) -> acpdb.Receipt:
        nonlocal at_once, most
        with lock:
            at_once += 1
            most = max(most, at_once)
        # All eight have to be on their way at once; else the barrier breaks.
        barrier.wait(60)
        try:
            return append(self, head, *entries)
        finally:
            with lock:
                at_once -= 1

    barrier = threading.Barrier(8)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(acpdb.Session, "append_expecting", watched)
        threads = [
            threading.Thread(target=put, args=(saver, {"configurable": {"thread_id": f"t{n}", "checkpoint_ns": ""}}, n))
            for n in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert most == 8 and len([*AcpdbSaver(store).list(None)]) == 8


def test_items_are_kept_found_and_forgotten(store: acpdb.Store) -> None:
    one, other = AcpdbStore(store), AcpdbStore(store)
    one.put(("users", "ada"), "food", {"likes": "pizza", "stars": 5})
    one.put(("users", "bob"), "food", {"likes": "soup", "stars": 2, "of": {"town": "Rome"}})
    one.put(("docs",), "k" * 2000, {"text": "the linker is red, \u00e9"})
    for it in (one, other, AcpdbStore(store)):
        found = it.get(("users", "ada"), "food")
        assert found is not None and found.value == {"likes": "pizza", "stars": 5} and found.created_at <= found.updated_at
        assert it.get(("users", "ada"), "drink") is None and it.get(("users",), "food") is None
        assert [item.namespace for item in it.search(("users",))] == [("users", "ada"), ("users", "bob")]
        assert [item.value["stars"] for item in it.search(("users",), filter={"stars": {"$gt": 2}})] == [5]
        assert [item.key for item in it.search((), filter={"of": {"town": "Rome"}})] == ["food"]
        assert it.search((), filter={"likes": {"$gte": 1}}) == []
        assert [item.key for item in it.search((), query="red linker", limit=1)] == ["k" * 2000]
        assert it.list_namespaces() == [("docs",), ("users", "ada"), ("users", "bob")]
        assert it.list_namespaces(prefix=("users",), max_depth=1) == [("users",)]
        assert it.list_namespaces(suffix=("*", "bob")) == [("users", "bob")]
    other.put(("users", "ada"), "food", {"likes": "pasta"})
    again = one.get(("users", "ada"), "food")
    assert again is not None and again.value == {"likes": "pasta"} and again.created_at == found.created_at
    one.delete(("users", "ada"), "food")
    one.delete(("users", "ada"), "food")
    assert other.get(("users", "ada"), "food") is None and len(AcpdbStore(store).search(())) == 2
    told = [json.loads(row["value"])["value"] for row in store.memory(project="langgraph", all=True) if row["value"]]
    assert {"likes": "pizza", "stars": 5} in told, "what it was before stays known"
    with pytest.raises(acpdb.InvalidError, match="\\$gte"):
        one.search((), filter={"stars": {"$near": 1}})
    assert asyncio.run(other.aget(("users", "bob"), "food")).value["likes"] == "soup"
    assert AcpdbStore(store, project="elsewhere").search(()) == []


def test_items_whose_time_is_over_are_not_read(store: acpdb.Store) -> None:
    it = AcpdbStore(store, ttl={"default_ttl": 60})
    it.put(("n",), "default", {"a": 1})
    it.put(("n",), "over", {"a": 2}, ttl=0.0)
    it.put(("n",), "never", {"a": 3}, ttl=None)
    assert [item.key for item in AcpdbStore(store).search(("n",))] == ["default", "never"]
    assert AcpdbStore(store).sweep() == 1 and it.sweep() == 0
    assert it.get(("n",), "over") is None
    it.put(("n",), "over", {"a": 4})
    assert [item.key for item in AcpdbStore(store).search(("n",))] == ["default", "never", "over"]


def test_a_read_gives_an_item_its_time_again_and_no_old_value(store: acpdb.Store) -> None:
    """It put the value again that it had read: one that another process had put meanwhile was lost."""
    one, other = AcpdbStore(store), AcpdbStore(store)
    place = (("n",), "k")
    one.put(*place, {"a": 1}, ttl=0.01)
    other.put(("m",), "k", {"a": 1}, ttl=60)
    time.sleep(0.05)
    assert one.get(*place) is not None
    used = AcpdbStore(store)
    used._catch_up()
    assert used._kept[place].used - used._kept[place].updated >= 50_000
    other.put(*place, {"a": 2}, ttl=60)
    time.sleep(0.01)
    # As it was read before the other one put it.
    one._touch(place, one._kept[place], True)
    for it in (one, other, AcpdbStore(store)):
        found = it.get(*place)
        assert found is not None and found.value == {"a": 2}


def test_a_sweep_leaves_what_was_put_anew_meanwhile(store: acpdb.Store) -> None:
    """A sweep that found its item gone read again, and forgot the one that stood there then: a living one."""
    one, other = AcpdbStore(store), AcpdbStore(store)
    for key in ("first", "second"):
        one.put(("n",), key, {"a": 1}, ttl=0.0)
    retract = acpdb.Store.retract
    with pytest.MonkeyPatch.context() as patch:

        def late(self: acpdb.Store, item: str, **named: Any) -> object:
            patch.undo()
            other.delete(("n",), "first")
            other.put(("n",), "first", {"a": 2})
            return retract(self, item, **named)

        patch.setattr(acpdb.Store, "retract", late)
        assert one.sweep() == 1
    for it in (one, other, AcpdbStore(store)):
        assert [(item.key, item.value) for item in it.search(("n",))] == [("first", {"a": 2})]
    # A deletion is of whatever stands there.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(acpdb.Store, "retract", late)
        one.delete(("n",), "first")
    assert AcpdbStore(store).search(("n",)) == []


def test_an_item_that_could_not_be_forgotten_stands(store: acpdb.Store) -> None:
    """It was gone for this store, and stood in the log for all others."""
    it = AcpdbStore(store)
    it.put(("n",), "k", {"a": 1})

    def busy(self: acpdb.Store, item: str, **named: Any) -> None:
        raise acpdb.BusyError("another process writes")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(acpdb.Store, "retract", busy)
        with pytest.raises(acpdb.BusyError):
            it.delete(("n",), "k")
    assert [len(one.search(("n",))) for one in (it, AcpdbStore(store))] == [1, 1]
    it.delete(("n",), "k")
    assert [len(one.search(("n",))) for one in (it, AcpdbStore(store))] == [0, 0]


def test_items_are_read_again_when_their_memory_changed(store: acpdb.Store) -> None:
    """Each commit of any session made the store of items read all of them again."""
    it, read = AcpdbStore(store), 0
    memory = acpdb.Store.memory

    def counted(*given: Any, **options: Any) -> Any:
        nonlocal read
        read += 1
        return memory(*given, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(acpdb.Store, "memory", counted)
        it.put(("n",), "k", {"a": 1})
        it.get(("n",), "k")
        before = read
        for number in range(5):
            store.session("s").append(acpdb.Entry.message("user", f"{number}"))
            assert it.get(("n",), "k") is not None
        assert read == before
        AcpdbStore(store).put(("n",), "k", {"a": 2})
        found = it.get(("n",), "k")
        assert found is not None and found.value == {"a": 2}
    assert store.memory_head(project="langgraph") > store.memory_head(project="another") == 0


def test_two_stores_lose_no_item_of_each_other(store: acpdb.Store, python: Callable[..., CompletedProcess[str]]) -> None:
    script = """
import sys, acpdb
from acpdb.adapters.langgraph import AcpdbStore
with acpdb.open(sys.argv[1]) as store:
    for number in range(40):
        AcpdbStore(store).put(("n",), f"theirs {number}", {"number": number})
"""
    ours = AcpdbStore(store)
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(python, script)
        for number in range(40):
            ours.put(("n",), f"ours {number}", {"number": number})
        assert other.result().returncode == 0, other.result().stderr
    assert len(ours.search(("n",), limit=100)) == 80


def test_two_processes_put_on_one_thread(store: acpdb.Store, python: Callable[..., CompletedProcess[str]]) -> None:
    """Each puts 40 checkpoints on one thread: none is lost, and each has its value."""
    script = """
import sys, acpdb
from acpdb.adapters.langgraph import AcpdbSaver
from langgraph.checkpoint.base import empty_checkpoint
with acpdb.open(sys.argv[1]) as store:
    saver = AcpdbSaver(store)
    for number in range(40):
        checkpoint = {**empty_checkpoint(), "channel_values": {"x": [number] * 50}, "channel_versions": {"x": f"b{number:03}"}}
        saver.put({"configurable": {"thread_id": "t", "checkpoint_ns": ""}}, checkpoint, {"source": "loop"}, {"x": f"b{number:03}"})
"""
    saver = AcpdbSaver(store)
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(python, script)
        for number in range(40):
            values = {"channel_values": {"x": [number] * 50}, "channel_versions": {"x": f"a{number:03}"}}
            config = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
            saver.put(config, {**empty_checkpoint(), **values}, {"source": "loop"}, {"x": f"a{number:03}"})
        assert other.result().returncode == 0, other.result().stderr
    found = [it.checkpoint["channel_values"]["x"][0] for it in AcpdbSaver(store).list(None)]
    assert sorted(found) == sorted([*range(40)] * 2)
