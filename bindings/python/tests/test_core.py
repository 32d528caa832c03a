"""Every operation once, by what a host does with it."""

from __future__ import annotations

import asyncio
import json
from datetime import datetime, timezone
from pathlib import Path

import acpdb
import pytest
from acpdb import Entry, Part, Store

LONG = "fn main() {} // and so much more that hiding it is worth a line in its place\n" * 20


def reads(session: acpdb.Session, count: int = 2) -> list[str]:
    """Reads one file so many times, each in a step of its own; the items of the calls."""
    items: list[str] = []
    for number in range(count):
        receipt = session.append(
            Entry.step(f"step-{number}"),
            Entry.tool_started(f"call-{number}", "read", {"filePath": "src/main.rs"}),
            Entry.tool_finished(f"call-{number}", LONG),
        )
        items.append(receipt.items[1] or "")
    return items


def test_an_append_is_durable_and_idempotent_by_origin(store: Store) -> None:
    session = store.session("s1")
    entry = Entry.message("user", "why is the build red?", origin="msg:1")
    first, again = session.append(entry), session.append(entry)
    assert (first.event_count, first.known_count) == (2, 0)
    assert (again.event_count, again.known_count) == (0, 1)
    assert first.first_seq > 0 and first.last_seq == store.head()
    assert first.recorded_at > 1_600_000_000_000_000
    with acpdb.open(store.path, read_only=True) as other:
        assert other.session("s1").context()["items"][0]["output"] == {
            "state": "whole",
            "text": "why is the build red?",
            "problem": None,
            "tokens": first_tokens(session),
            "tokens_shown": first_tokens(session),
        }


def first_tokens(session: acpdb.Session) -> int:
    return session.context()["items"][0]["tokens"]


def test_all_kinds_of_facts_are_told_back(store: Store) -> None:
    session = store.session("s1", project="shop", cwd="/w", title="The shop")
    session.append(
        Entry.request(system="Be brief.", tools=[{"name": "read"}], model="m-1"),
        Entry.prompt("p1"),
        Entry.message("user", [Part.text("look"), Part.media(b'{"type":"image"}', "image/png")], key="m1"),
        Entry.step("t1"),
        Entry.message("assistant", (Part.reasoning("hm", b"signed"), Part.text("I will.")), key="m2"),
        Entry.tool_started("c1", "read", '{"filePath":"a.rs"}', message="m2"),
        Entry.tool_finished("c1", error="no such file"),
        Entry.todos([{"content": "mend it", "status": "in_progress", "id": "1"}]),
        Entry.memory("uses pnpm", kind="fact", confidence=0.9, lifespan="project"),
        Entry.file_changed("b.rs"),
        Entry.host_record("note", b"\x00\xff", about="m1"),
    )
    rows = session.history()
    assert [row["kind"] for row in rows] == ["text", "media", "reasoning", "text", "call"]
    assert rows[-1]["status"] == "failed" and rows[-1]["call"] == "c1"
    todos = session.todos()
    assert [(item["content"], item["status"]) for item in todos["items"]] == [("mend it", "in_progress")]
    assert [(row["value"], row["confidence"]) for row in store.memory(project="shop")] == [("uses pnpm", 0.9)]
    assert session.view().body(rows[-1]["item"], "input") == b'{"filePath":"a.rs"}'
    context = session.context()
    assert (context["project"], context["title"], context["host"]) == ("shop", "The shop", "acpdb")


def test_a_view_is_frozen_and_any_moment_can_be_seen(store: Store) -> None:
    session = store.session("s1")
    first, second = reads(session)
    now = session.view()
    assert not now.is_visible(first) and now.is_visible(second)
    before = session.view("t1")
    assert before.is_visible(first) and before.seq < now.seq
    assert session.view(now.seq).seq == now.seq
    assert session.view(datetime.now(timezone.utc)).seq == now.seq
    session.append(Entry.message("user", "more"))
    assert len(now.context()["items"]) + 1 == len(session.context()["items"])
    shown, whole = now.tokens()
    assert shown < whole


def test_an_item_is_explained_and_its_chain_told(store: Store) -> None:
    session = store.session("s1")
    first, second = reads(session)
    chain = session.chain(first)
    assert [row["item"] for row in chain["items"]] == [first, second]
    assert [(edge["old"], edge["new"], edge["rule"]) for edge in chain["edges"]] == [(first, second, "repeat")]
    explained = session.explain(first)
    assert not explained["visible"] and explained["sentences"]
    assert session.explain(first, at="t1")["visible"]
    assert [row["item"] for row in session.history(file="src/main.rs", limit=1)] == [first]
    assert session.history(tool="write") == []
    assert [row["item"] for row in session.history(filter="state:superseded")] == [first]


def test_what_is_hidden_is_shown_again(store: Store) -> None:
    session = store.session("s1")
    (item,) = reads(session, 1)
    reply = session.distill({item: "a main"})
    assert reply["hidden"] and reply["last_seq"] == store.head()
    assert session.context()["items"][0]["output"] is not None
    assert "a main" in str(session.context()["items"][0]["output"])
    assert session.restore(item, pin=True)["shown"]
    assert session.history()[0]["pinned"]
    session.unpin("call-0")
    session.pin(item)
    session.unpin(item)
    assert session.discard(item)["hidden"]
    assert not session.view().is_visible(item)
    session.context_tool({"action": "restore", "targets": [[session.history()[0]["hash"]]]})
    assert session.view().is_visible(item)


def test_a_context_is_served_and_begins_with_the_one_before(store: Store) -> None:
    session = store.session("s1")
    session.append(Entry.prompt("p1"), Entry.message("user", "why is the build red?"))
    first = session.step("step-1").context("anthropic")
    session.append(Entry.message("assistant", "Let me see."), Entry.message("user", "Do."))
    second = session.step("step-2").context("anthropic", tokens_max=100_000)
    assert second.body.startswith(first.body.rstrip(b"]}"))
    assert second.seq > first.seq and second.over_budget is None and second.rebased is None
    assert acpdb.lint(second.body, "anthropic") == []
    assert json.loads(session.context(format="openai"))["messages"][0]["role"] == "user"
    assert b"why is the build red?" in session.export("markdown", selection="history")
    assert session.export("html").startswith(b"<!")
    assert json.loads(session.export("otlp"))["resourceSpans"]


def test_memory_without_a_project_says_how_one_comes_about(store: Store) -> None:
    with pytest.raises(acpdb.InvalidError, match="no project of this store has a memory yet; name one as project"):
        store.memory()
    for project in ("a", "b"):
        store.remember(Entry.memory("uses pnpm"), project=project)
    with pytest.raises(acpdb.InvalidError, match="2 projects in this store; name one as project: a, b"):
        store.memory()


def test_a_rewind_goes_to_any_point_that_a_view_has(store: Store) -> None:
    session = store.session("s1")
    for number in range(3):
        session.append(Entry.step(f"t{number}"), Entry.message("assistant", f"m{number}"))
    session.rewind(session.view("t1").seq)
    assert [item["output"]["text"] for item in session.context()["items"]] == ["m0"]


def test_a_rewind_leaves_the_context_and_stays_in_the_log(store: Store) -> None:
    session = store.session("s1")
    kept = session.append(Entry.message("user", "one").of_record({"n": 1}))
    session.append(Entry.message("user", "two").of_record({"n": 2}))
    session.rewind(kept.last_seq)
    again = session.rewind(kept.last_seq)
    assert again["last_seq"] is None and again["reply"].startswith("Nothing to rewind")
    session.append(Entry.message("user", "three").of_record({"n": 3}))
    assert [json.loads(raw)["n"] for _, raw in session.records()] == [1, 3]
    assert [json.loads(raw)["n"] for _, raw in session.records(after=kept.last_seq)] == [3]
    assert [item["output"]["text"] for item in session.context()["items"] if item["output"]] == ["one", "three"]
    assert len(session.history()) == 3


def test_memory_holds_is_superseded_and_is_retracted(store: Store) -> None:
    session = store.session("s1", project="shop")
    session.remember(Entry.memory("npm", kind="preference", key="package_manager"))
    held = session.remember(Entry.memory("pnpm", kind="preference", key="package_manager"))
    again = store.remember(Entry.memory("pnpm", kind="preference", key="package_manager"), project="shop")
    assert again["item"] is None and again["id"] == held["id"]
    fact = session.remember(Entry.memory("the API is at /v1"))
    newer = session.remember(Entry.memory("the API is at /v2"))
    session.supersede(fact["id"], newer["id"], reason="moved")
    session.reinforce(newer["id"])
    session.retract(newer["id"], reason="gone")
    standing = {row["value"]: row["standing"] for row in session.memory(all=True)}
    assert standing == {
        "npm": "superseded",
        "pnpm": "current",
        "the API is at /v1": "superseded",
        "the API is at /v2": "retracted",
    }
    assert [row["value"] for row in session.memory()] == ["pnpm"]
    session.restore_memory(newer["id"])
    assert "pnpm" in [row["value"] for row in store.memory()]
    store.retract(held["id"], project="shop")


def test_what_a_crash_left_open_is_found_and_ended(store: Store) -> None:
    session = store.session("s1")
    assert session.resume() == {"is_new": True, "calls": [], "messages": []}
    session.append(Entry.step("t1"), Entry.tool_started("c1", "bash", {"command": "sleep 9"}))
    assert [(call["call"], call["tool"]) for call in session.resume()["calls"]] == [("c1", "bash")]
    assert session.give_up("the host was restarted").event_count == 1
    assert session.resume()["calls"] == []
    assert session.history()[0]["status"] == "aborted"


def test_search_goes_over_all_sessions(store: Store) -> None:
    store.session("s1").append(Entry.message("user", "the Build is red"))
    store.session("s2").append(Entry.message("user", "the build is green"))
    assert {hit["session"] for hit in store.search("build")["items"]} == {"s1", "s2"}
    assert [hit["session"] for hit in store.search("Build")["items"]] == ["s1"]
    assert [hit["session"] for hit in store.search("gr[e]+n", regex=True)["items"]] == ["s2"]
    assert store.session("s1").search("green")["items"] == []
    assert [row["id"] for row in store.sessions()] == ["s1", "s2"]
    assert store.find_session("s2").key == "s2"
    assert {name["id"] for name in store.names() if name["scope"] == "session"} == {"s1", "s2"}


def test_policies_are_weighed_and_set(store: Store) -> None:
    reads(store.session("s1"), 3)
    rows = store.simulate(policies=["acp", "recorded"], modes=["eager", "append_only"])
    assert [(row["policy"], row["mode"]) for row in rows] == [
        ("acp", "eager"),
        ("acp", "append_only"),
        ("recorded", "eager"),
        ("recorded", "append_only"),
    ]
    assert store.simulate(session="s1", policies=["acp"], modes=["eager"])[0]["request_count"] == 3
    before = store.head()
    assert store.set_policy("careful", reason="a trial") > before
    assert store.set_policy(store.policy()) > 0


def test_stores_are_verified_and_exported(store: Store) -> None:
    reads(store.session("s1"))
    assert acpdb.verify(store.path)["head_seq"] == store.head()
    lines = store.export().splitlines()
    assert lines and all(json.loads(line)["session"] == "s1" for line in lines)
    assert store.info()["session_count"] == 1


def test_commits_are_followed(store: Store) -> None:
    head = store.head()
    feed = store.subscribe(head, timeout=0)
    assert list(feed) == []
    store.session("s1").append(Entry.message("user", "one"))
    store.session("s2").append(Entry.message("user", "two"))
    commits = list(feed)
    assert [[event["session"] for event in commit["events"]] for commit in commits] == [["s1"] * 2, ["s2"] * 2]
    assert feed.next_seq == store.head() + 1
    event = store.event(store.head())
    assert event is not None and (event["kind"], event["session"]) == ("message_recorded", "s2")
    assert store.event(store.head() + 1) is None


def test_tickets_are_awaited_in_a_loop(store: Store) -> None:
    async def main() -> list[int]:
        session = store.session("s1")
        tickets = [session.submit(Entry.message("user", f"message {number}")) for number in range(200)]

        async def one(ticket: acpdb.Ticket) -> int:
            return (await ticket).last_seq

        return await asyncio.gather(*[one(ticket) for ticket in tickets])

    seqs = asyncio.run(main())
    assert seqs == sorted(seqs) and len(set(seqs)) == 200 and seqs[-1] == store.head()
    # Another loop has another bell.
    assert asyncio.run(main())[-1] == store.head()


def test_a_ticket_is_waited_for_once(store: Store) -> None:
    ticket = store.session("s1").submit(Entry.message("user", "hello"))
    assert ticket.last_seq == ticket.wait().last_seq
    with pytest.raises(acpdb.ClosedError):
        ticket.wait()
    # A ticket that is dropped becomes durable all the same.
    dropped = store.session("s1").submit(Entry.message("user", "again")).last_seq
    store.sync()
    assert store.subscribe(dropped - 1).next_within(10) is not None


def test_commits_are_followed_in_a_loop(store: Store) -> None:
    async def main() -> list[str]:
        seen: list[str] = []

        async def follow() -> None:
            async for commit in store.subscribe(store.head()):
                seen.extend(str(event["session"]) for event in commit["events"][:1])
                if len(seen) == 3:
                    return

        task = asyncio.create_task(follow())
        await asyncio.sleep(0)
        for name in ("a", "b", "c"):
            await store.session(name).submit(Entry.message("user", name))
        await asyncio.wait_for(task, 30)
        async for _ in store.subscribe(store.head(), timeout=0.05):
            raise AssertionError("nothing comes")
        return seen

    assert asyncio.run(main()) == ["a", "b", "c"]


def test_secrets_are_taken_out_if_asked_for(tmp_path: Path) -> None:
    secret = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
    with acpdb.open(tmp_path / "store", redact=True, durability="os", index=False) as store:
        store.session("s1").append(Entry.message("user", f"token {secret}"))
        assert secret not in str(store.session("s1").context())


def test_a_context_says_where_marks_of_the_cache_go(store: acpdb.Store) -> None:
    """Anthropic's cache keeps only what it is told to keep, and a host in Python was not told where that pays."""
    session = store.session("s1")
    session.append(Entry.request(system="You help."))
    told: list[list[int]] = []
    for number in (1, 2, 3):
        session.append(Entry.message("user", f"question {number}"))
        step = session.step(f"t{number}")
        plain = step.context("anthropic")
        told.append(plain.breakpoints)
        marked = step.context("anthropic", breakpoints=True)
        assert marked.breakpoints == plain.breakpoints
        assert b"cache_control" not in plain.body
        assert marked.body.count(b"cache_control") > 1
        assert acpdb.lint(marked.body, "anthropic", model="m") == acpdb.lint(plain.body, "anthropic", model="m")
        session.append(Entry.message("assistant", f"answer {number}"))
    assert told == [[1], [1, 3], [3, 5]]
    # Others keep by themselves what they read.
    bodies = [session.step("t4").context("openai", breakpoints=marks).body for marks in (False, True)]
    assert bodies[0] == bodies[1]


def test_what_rests_on_a_view_is_recorded_if_no_other_writer_came_between(store: Store) -> None:
    session = store.session("s1")
    session.append_expecting(0, Entry.message("user", "one"))
    seq = session.view().seq
    store.session("s2").append(Entry.message("user", "another session is no matter"))
    session.append_expecting(seq, Entry.message("user", "two"))
    with pytest.raises(acpdb.HeadMovedError, match=str(seq)):
        session.append_expecting(seq, Entry.message("user", "late"))
    assert len(session.history()) == 2
