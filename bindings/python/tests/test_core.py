"""Every operation once, by what a host does with it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path

import acpdb
import pytest
from acpdb import Entry, Part, Session, Store

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


def test_a_key_has_one_category_through_every_door(store: Store) -> None:
    session = store.session("s1", project="shop")
    session.remember(Entry.memory("npm", kind="preference", key="package_manager"))
    session.append(Entry.memory("yarn", kind="preference", key="package_manager"))
    store.remember(Entry.memory("pnpm", kind="preference", key="package_manager"), project="shop")
    rows = [(row["category"], row["value"], row["standing"]) for row in session.memory(all=True)]
    assert rows == [("tooling", "npm", "superseded"), ("tooling", "yarn", "superseded"), ("tooling", "pnpm", "current")]


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


def test_what_is_erased_is_gone_and_what_is_sealed_and_copied_stays(store: acpdb.Store, tmp_path: Path) -> None:
    session, other = store.session("s1"), store.session("s2")
    session.append(Entry.message("user", "my password is swordfish"), Entry.message("user", "why is the build red?"))
    other.append(Entry.message("user", "my password is swordfish"))
    secret = session.history()[0]["item"]
    would = store.erase(secret, dry_run=True)
    assert (would["recorded"], [hit["session"] for hit in would["hit"]]) == (None, ["s1", "s2"])
    assert len(store.search("swordfish")["items"]) == 2
    done = store.erase(secret, reason="a secret", by="Ada")
    assert done["hit"] == would["hit"] and done["recorded"] == store.head()
    assert store.search("swordfish")["items"] == [] and len(store.search("build")["items"]) == 1
    with pytest.raises(acpdb.NotFoundError):
        store.erase("r_00000")
    assert store.seal(active=True)["left"] == 0
    copy = store.backup(tmp_path / "copy")
    assert (copy["head"], copy["report"]["verdict"]) == (store.head(), "sound")
    assert acpdb.restore(tmp_path / "copy", tmp_path / "again")["head"] == store.head()
    with acpdb.open(tmp_path / "again") as again:
        assert [it["output"] for it in again.session("s1").context()["items"]] == [
            it["output"] for it in session.context()["items"]
        ]
    with pytest.raises(acpdb.InvalidError, match="acpdb backup"):
        store.backup("file:///tmp/copy")
    assert not Path("file:").exists()
    assert store.verify(deep=True)["verdict"] == "sound"


def test_records_are_erased_in_one_go_and_what_others_have_stays(store: acpdb.Store) -> None:
    one, other = store.session("s1"), store.session("s2")
    long = b"x" * (17 << 20)
    for session, own in ((one, b"one"), (other, b"two")):
        session.append(Entry.host_record("r", own), Entry.host_record("r", b"both"), Entry.host_record("r", own + long))
    seqs = [seq for seq, _ in one.records()]
    report = store.erase_records(*seqs, reason="no longer needed")
    assert {hit["session"] for hit in report["hit"]} == {"s1"}
    assert [raw for _, raw in other.records()] == [b"two", b"both", b"two" + long]
    assert b"one" not in [raw for _, raw in one.records()]
    assert store.erase_records(*seqs)["hit"] == [] and store.erase_records()["hit"] == []
    one.append(Entry.host_record("r", b"one"), Entry.message("user", "hello"))
    assert one.records()[-1][1] == b"one", "what was given up may be recorded again"
    with pytest.raises(acpdb.InvalidError, match="no host's record"):
        store.erase_records(store.head())
    assert store.verify(deep=True)["verdict"] == "sound"


def test_a_fork_continues_its_session(store: acpdb.Store) -> None:
    session = store.session("s1", project="shop", title="The shop")
    first = session.append(Entry.message("user", "one"))
    session.append(Entry.message("user", "two"))
    forks = [session.fork(at=first.last_seq), session.fork(), session.fork("mine", title="Mine")]
    assert [fork.key for fork in forks] == ["s1-fork-1", "s1-fork-2", "mine"]
    texts = [[item["output"]["text"] for item in fork.context()["items"]] for fork in forks]
    assert texts == [["one"], ["one", "two"], ["one", "two"]]
    assert [row["title"] for row in store.sessions()] == ["The shop", "fork of The shop at t0", "fork of The shop at t0", "Mine"]
    with pytest.raises(acpdb.RejectedError, match="another key"):
        session.fork("mine")
    with pytest.raises(acpdb.InvalidError):
        session.fork("")
    with pytest.raises(acpdb.NotFoundError):
        store.session("nothing").fork()


def test_an_encrypted_store_is_opened_with_its_key(tmp_path: Path) -> None:
    words = "correct horse battery"
    with acpdb.open(tmp_path / "store", passphrase=words) as store:
        store.session("s1").append(Entry.message("user", "swordfish"))
        assert store.info()["encrypted"]
        store.backup(tmp_path / "copy")
    for wrong in ({}, {"passphrase": "another passphrase"}, {"key_file": tmp_path / "missing"}):
        with pytest.raises(acpdb.LockedError):
            acpdb.open(tmp_path / "store", **wrong)
    with acpdb.open(tmp_path / "store", passphrase=words, read_only=True) as store:
        assert len(store.search("swordfish")["items"]) == 1
    acpdb.restore(tmp_path / "copy", tmp_path / "again", passphrase=words)
    with acpdb.open_all(tmp_path / "store", tmp_path / "again", passphrase=words) as stores:
        assert [*stores] == ["store"] and [copy["label"] for copy in stores.copies] == ["again"]
    with acpdb.open(tmp_path / "plain"):
        pass
    with pytest.raises(acpdb.LockedError):
        acpdb.open(tmp_path / "plain", passphrase=words)
    assert not any(b"swordfish" in file.read_bytes() for file in (tmp_path / "store").rglob("*") if file.is_file())


def test_several_stores_are_read_as_one(tmp_path: Path) -> None:
    for name in ("laptop", "server"):
        with acpdb.open(tmp_path / name) as store:
            store.session(f"on-{name}").append(Entry.message("user", f"hello from the {name}"))
    with acpdb.open_all(*acpdb.stores_in(tmp_path)) as stores:
        assert [*stores] == ["laptop", "server"] and len(stores) == 2 and stores.forks == []
        assert [(label, row["id"]) for label, row in stores.sessions()] == [("laptop", "on-laptop"), ("server", "on-server")]
        assert [(label, hit["session"]) for label, hit in stores.search("hello", limit=1)] == [("laptop", "on-laptop")]
        assert [session.key for session in stores["server"]] == ["on-server"]
        with pytest.raises(acpdb.ReadOnlyError):
            stores["server"].session("s").append(Entry.message("user", "x"))
        with pytest.raises(KeyError):
            stores["phone"]
        assert "phone" not in stores and 1 not in stores
        with pytest.raises(acpdb.NotFoundError, match="laptop, server"):
            stores.store("phone")
    with pytest.raises(acpdb.NotAStoreError):
        acpdb.open_all(tmp_path / "nothing").store("nothing")
    # Whether a label is there is known without a look into its store.
    assert "nothing" in acpdb.open_all(tmp_path / "nothing")
    assert not (tmp_path / "nothing").exists()


def test_handles_are_what_python_expects(tmp_path: Path) -> None:
    async def main() -> None:
        async with acpdb.open(tmp_path / "store") as store:
            session = store.session("s1")
            await session.submit(Entry.message("user", "hello <b>"))
            assert session == store.session("s1") != store.session("s2") and session != "s1"
            assert {session, store.session("s1")} == {session} == {*store}
            assert [row["item"] for row in session.view()] == [row["item"] for row in session.history()]
            assert "srcdoc" in session._repr_html_() and "<b>" not in session._repr_html_()
        assert store.closed

    asyncio.run(main())


def test_without_waiting_for_the_disk_what_was_recorded_is_seen_at_once(tmp_path: Path) -> None:
    """Contexts had it, and names, sessions, the head and events had not."""
    with acpdb.open(tmp_path / "store", durability="os", any_file_system=True) as store:
        for number in range(20):
            last = store.session(f"s{number}").append(Entry.message("user", "hello")).last_seq
            assert store.head() == last and store.event(last) is not None
            assert len(store.sessions()) == len([*store]) == number + 1
            assert store.find_session(f"s{number}").history()[0]["seq"] == last


def test_without_waiting_for_the_disk_acts_rest_on_what_was_just_recorded(tmp_path: Path) -> None:
    """Within milliseconds of an append nine operations said that there is no such session."""
    memory = Entry.memory("pnpm", kind="preference", key="package_manager")
    acts: list[Callable[[Session], object]] = [
        lambda it: it.remember(memory),
        lambda it: it.append(memory),
        lambda it: it.discard("c"),
        lambda it: it.distill({"c": "what it said"}),
        lambda it: it.pin("c"),
        lambda it: it.rewind(3),
        lambda it: it.fork().history(),
        lambda it: it.resume(),
        lambda it: it.give_up("the host was restarted"),
        lambda it: it.retract("m1"),
        lambda it: it.step("t1").context("anthropic"),
        lambda it: it.append_expecting(it.view().seq, Entry.message("user", "more")),
    ]
    for number, act in enumerate(acts):
        with acpdb.open(tmp_path / str(number), durability="os", any_file_system=True) as store:
            session = store.session("s1", project="shop")
            session.append(
                Entry.message("user", "hello"),
                Entry.tool_started("c", "read", {"filePath": "a"}),
                Entry.tool_finished("c", "a text"),
                Entry.memory("fact", id="m1"),
            )
            act(session)
