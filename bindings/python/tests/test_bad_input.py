"""Input that is wrong: an error of the right class that says what to do; no panic, no hang, and nothing recorded."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import acpdb
import pytest
from blake3 import blake3
from acpdb import Entry, Part, Store

#: Wrong values are handed over on purpose.
Wrong = cast(Any, Entry)
LONE = "\ud800"


def nested(depth: int) -> Any:
    value: Any = 0
    for _ in range(depth):
        value = [value]
    return value


def cycle() -> Any:
    value: dict[str, Any] = {}
    value["self"] = value
    return value


FACTS: list[tuple[Callable[[], object], type[Exception], str]] = [
    (lambda: Wrong.message("user", None), TypeError, "text is str, bytes or a list of acpdb.Part, not NoneType"),
    (lambda: Wrong.message("user", 1), TypeError, "not int"),
    (lambda: Wrong.message("user", ["text"]), TypeError, "acpdb.Part, not str"),
    (lambda: Wrong.message(None, "x"), TypeError, "str"),
    (lambda: Wrong.message("robot", "x"), acpdb.InvalidError, "expected one of"),
    (lambda: Wrong.message(LONE, "x"), acpdb.InvalidError, "surrogate"),
    (lambda: Wrong.memory("x", category=LONE), acpdb.InvalidError, "surrogate"),
    (lambda: Wrong.memory("x", replaces=[LONE]), acpdb.InvalidError, "surrogate"),
    (lambda: Wrong.message("user", LONE), acpdb.InvalidError, "surrogate"),
    (lambda: Wrong.message("user", "x", key=LONE), acpdb.InvalidError, "key holds half of a surrogate"),
    (lambda: Wrong.message("user", "x", key=1), TypeError, "key is str, not int"),
    (lambda: Wrong.message("user", "x", colour="red"), TypeError, "colour"),
    (lambda: Wrong.tool_started("c", "t", {"n": math.nan}), acpdb.InvalidError, "no form in JSON"),
    (lambda: Wrong.tool_started("c", "t", {"n": math.inf}), acpdb.InvalidError, "no form in JSON"),
    (lambda: Wrong.tool_started("c", "t", {"n": object()}), acpdb.InvalidError, "no form in JSON"),
    (lambda: Wrong.tool_started("c", "t", {"n": LONE}), acpdb.InvalidError, "surrogate"),
    (lambda: Wrong.tool_started("c", "t", cycle()), acpdb.InvalidError, "no form in JSON"),
    (lambda: Wrong.tool_started("c", "t", nested(100_000)), acpdb.InvalidError, "no form in JSON"),
    (lambda: Wrong.tool_started("c", "t", "{"), acpdb.InvalidError, "params is no JSON"),
    (lambda: Wrong.tool_started("c", None, {}), TypeError, "tool is str, not NoneType"),
    (lambda: Wrong.tool_finished("c", "x", error="y"), acpdb.InvalidError, "not with both"),
    (lambda: Wrong.tool_finished("c", "x", outcome="fine"), acpdb.InvalidError, "outcome"),
    (lambda: Wrong.step(number=2**40), acpdb.InvalidError, "out of range"),
    (lambda: Wrong.step(number=-1), acpdb.InvalidError, "out of range"),
    (lambda: Wrong.todos("[1]"), acpdb.InvalidError, "a list of dicts"),
    (lambda: Wrong.todos({"content": "x"}), acpdb.InvalidError, "a list of dicts"),
    (lambda: Wrong.memory(""), acpdb.InvalidError, "empty"),
    (lambda: Wrong.memory("x", kind="idea"), acpdb.InvalidError, "expected one of"),
    (lambda: Wrong.memory("x", kind="preference"), acpdb.InvalidError, "needs key"),
    (lambda: Wrong.memory("x", confidence=math.nan), acpdb.InvalidError, "confidence"),
    (lambda: Wrong.memory("x", confidence=1.5), acpdb.InvalidError, "confidence"),
    (lambda: Wrong.file_changed(Path("a")), TypeError, "path is str"),
    (lambda: Wrong.host_record("r", bytearray(b"x")), TypeError, "raw is str or bytes, not bytearray"),
    (lambda: cast(Any, Part).text(None), TypeError, "text is str or bytes"),
    (lambda: Wrong.message("user", "x").of_record("{"), acpdb.InvalidError, "raw is no JSON"),
    (lambda: Wrong.message("user", "x").at_time(2**70), acpdb.InvalidError, "out of range"),
]


@pytest.mark.parametrize("number", range(len(FACTS)))
def test_a_wrong_fact_is_refused_as_it_is_made(number: int) -> None:
    make, kind, says = FACTS[number]
    with pytest.raises(kind) as caught:
        make()
    assert says in str(caught.value)


ASKED: list[tuple[Callable[[Any], object], type[Exception], str]] = [
    (lambda it: it.append("x"), TypeError, "an acpdb.Entry, not str"),
    (lambda it: it.append(None), TypeError, "an acpdb.Entry, not NoneType"),
    (lambda it: it.append([Entry.step()]), TypeError, "spread a list: append(*entries)) is an acpdb.Entry, not list"),
    (lambda it: it.submit({}), TypeError, "an acpdb.Entry, not dict"),
    (lambda it: it.view(-1), acpdb.InvalidError, "a seq is from 1"),
    (lambda it: it.view(2**64), acpdb.InvalidError, "a seq is from 1"),
    (lambda it: it.view(10**9), acpdb.NotFoundError, "1000000000"),
    (lambda it: it.view("t99"), acpdb.NotFoundError, "turn"),
    (lambda it: it.view("yesterday-ish"), acpdb.InvalidError, '"yesterday-ish" is no point in time; give 812'),
    (lambda it: it.view(True), acpdb.InvalidError, "not true"),
    (lambda it: it.view(LONE), acpdb.InvalidError, "surrogate"),
    (lambda it: it.view(1.5), TypeError, "not float"),
    (lambda it: it.explain("#999"), acpdb.NotFoundError, "999"),
    (lambda it: it.explain(7), TypeError, "str"),
    (lambda it: it.chain("nothing"), acpdb.NotFoundError, "nothing"),
    (lambda it: it.history(filter="colour:red"), acpdb.InvalidError, "colour"),
    (lambda it: it.history(file="a", tool="b"), acpdb.InvalidError, "file or tool"),
    (lambda it: it.history(limit=-1), acpdb.InvalidError, "negative"),
    (lambda it: it.search(), acpdb.InvalidError, "nothing to look for"),
    (lambda it: it.search("("  , regex=True), acpdb.InvalidError, "regular expression"),
    (lambda it: it.search(None), TypeError, "patterns holds strings, not nothing"),
    (lambda it: it.search("x", limit=-1), acpdb.InvalidError, "out of range"),
    (lambda it: it.search("x", limit=2**70), acpdb.InvalidError, "out of range"),
    (lambda it: it.search(LONE), acpdb.InvalidError, "surrogate"),
    (lambda it: it.explain(LONE), acpdb.InvalidError, "surrogate"),
    (lambda it: it.history(file=LONE), acpdb.InvalidError, "surrogate"),
    (lambda it: it.discard(LONE), acpdb.InvalidError, "surrogate"),
    (lambda it: it.step(LONE), acpdb.InvalidError, "surrogate"),
    (lambda it: it.context(last=-1), acpdb.InvalidError, "negative"),
    (lambda it: it.records(after=-1), acpdb.InvalidError, "negative"),
    (lambda it: it.discard(), acpdb.InvalidError, "at least one target"),
    (lambda it: it.discard("#999"), acpdb.RejectedError, ""),
    (lambda it: it.distill({"#999": "x"}), acpdb.RejectedError, ""),
    (lambda it: it.context_tool({"action": "burn", "targets": []}), acpdb.RejectedError, "discard"),
    (lambda it: it.rewind(-1), acpdb.InvalidError, "negative"),
    (lambda it: it.rewind(10**9), acpdb.RejectedError, ""),
    (lambda it: it.update_tasks([{"id": math.nan}]), acpdb.InvalidError, "no form in JSON"),
    (lambda it: it.export("pdf"), acpdb.InvalidError, "markdown, text, html, otlp"),
    (lambda it: it.step("s").context("html"), acpdb.InvalidError, "gemini, markdown, text"),
    (lambda it: it.export("anthropic", selection="some"), acpdb.InvalidError, "selection"),
    (lambda it: it.context(layer="middle"), acpdb.InvalidError, "layer"),
    (lambda it: it.step("s").context("anthropic", mode="lazy"), acpdb.InvalidError, "mode"),
    (lambda it: it.step("s").context("anthropic", tokens_max=-1), acpdb.InvalidError, "negative"),
    (lambda it: it.remember(Entry.message("user", "x")), acpdb.InvalidError, "Entry.memory"),
    (lambda it: it.retract("d99"), acpdb.RejectedError, "d99"),
    (lambda it: it.view().body("#2", "side"), acpdb.InvalidError, "face"),
]


@pytest.mark.parametrize("number", range(len(ASKED)))
def test_a_wrong_question_is_refused_and_records_nothing(store: Store, number: int) -> None:
    ask, kind, says = ASKED[number]
    session = store.session("s1")
    session.append(Entry.message("user", "hello"))
    session.step("s")
    head = store.head()
    with pytest.raises(kind) as caught:
        ask(session)
    assert says in str(caught.value), str(caught.value)
    assert store.head() == head


def test_a_store_is_asked_wrongly(store: Store, tmp_path: Path) -> None:
    wrong = cast(Any, store)
    cases: list[tuple[Callable[[], object], type[Exception]]] = [
        (lambda: wrong.session(""), acpdb.InvalidError),
        (lambda: wrong.session(None), TypeError),
        (lambda: wrong.find_session("unheard-of"), acpdb.NotFoundError),
        (lambda: store.session("new").view(), acpdb.NotFoundError),
        (lambda: wrong.subscribe(-1), acpdb.InvalidError),
        (lambda: wrong.event(2**64), acpdb.InvalidError),
        (lambda: wrong.session(LONE), acpdb.InvalidError),
        (lambda: wrong.session("s", host=LONE), acpdb.InvalidError),
        (lambda: wrong.search(LONE), acpdb.InvalidError),
        (lambda: wrong.sessions(LONE), acpdb.InvalidError),
        (lambda: store.subscribe().next_within(math.nan), acpdb.InvalidError),
        (lambda: store.subscribe().next_within(-1), acpdb.InvalidError),
        (lambda: wrong.simulate(policies="acp"), TypeError),
        (lambda: wrong.simulate(modes=["lazy"]), acpdb.InvalidError),
        (lambda: wrong.simulate(price="unheard-of"), acpdb.InvalidError),
        (lambda: wrong.set_policy("unheard-of"), acpdb.InvalidError),
        (lambda: wrong.set_policy({"unheard-of": 1}), acpdb.InvalidError),
        (lambda: wrong.export("pdf"), acpdb.InvalidError),
        (lambda: store.memory(), acpdb.InvalidError),
        (lambda: acpdb.lint(b"{", "anthropic"), acpdb.InvalidError),
        (lambda: cast(Any, acpdb).lint({}, "markdown"), acpdb.InvalidError),
        (lambda: acpdb.verify(tmp_path / "nothing"), acpdb.NotAStoreError),
        (lambda: cast(Any, acpdb).open(None), TypeError),
        (lambda: cast(Any, acpdb).open(tmp_path / "a", durability="never"), acpdb.InvalidError),
        (lambda: acpdb.open(tmp_path / "b", lock_wait=-1), acpdb.InvalidError),
        (lambda: acpdb.open(tmp_path / "c", create=False), acpdb.NotAStoreError),
        (lambda: acpdb.open(tmp_path / "d", read_only=True), acpdb.NotAStoreError),
    ]
    for number, (ask, kind) in enumerate(cases):
        with pytest.raises(kind):
            ask()
            pytest.fail(f"case {number} was not refused")


def test_a_closed_handle_says_so(tmp_path: Path) -> None:
    store = acpdb.open(tmp_path / "store")
    session = store.session("s1")
    session.append(Entry.message("user", "hello"))
    view, feed, ticket = session.view(), store.subscribe(), session.submit(Entry.message("user", "more"))
    store.close()
    store.close()
    assert store.closed and "closed" in repr(store)
    for use in (store.head, session.view, view.context, lambda: feed.next_within(0), lambda: store.session("s2")):
        with pytest.raises(acpdb.ClosedError, match="open it again"):
            use()
    # A commit that was submitted is as durable as ever.
    assert ticket.wait().event_count == 1
    with acpdb.open(tmp_path / "store") as again:
        assert len(again.session("s1").history()) == 2


def test_a_store_for_reading_refuses_to_write(store: Store) -> None:
    with acpdb.open(store.path, read_only=True) as reader:
        with pytest.raises(acpdb.ReadOnlyError):
            reader.session("s1").append(Entry.message("user", "hello"))


def test_a_store_of_a_newer_format_is_not_touched(tmp_path: Path) -> None:
    acpdb.open(tmp_path / "store").close()
    file = tmp_path / "store" / "acpdb.json"
    checked, _ = file.read_text().rsplit(',\n  "check": "', 1)
    checked = re.sub('"acpdb": [0-9]+,', '"acpdb": 1001,', checked)
    file.write_text(f'{checked},\n  "check": "{blake3(checked.encode()).hexdigest()}"\n}}\n')
    with pytest.raises(acpdb.NewerFormatError, match="update acpdb"):
        acpdb.open(tmp_path / "store")


def test_damage_is_found(tmp_path: Path) -> None:
    with acpdb.open(tmp_path / "store") as store:
        for number in range(20):
            store.session("s1").append(Entry.message("user", f"message {number}"))
    segment = max((tmp_path / "store").rglob("*"), key=lambda path: path.stat().st_size if path.is_file() else 0)
    report = acpdb.verify(tmp_path / "store")
    assert report["verdict"] == "sound"
    data = bytearray(segment.read_bytes())
    at = data.index(b"message 7")
    data[at] ^= 0xFF
    segment.write_bytes(data)
    assert acpdb.verify(tmp_path / "store")["verdict"] == "damaged"


def test_every_class_of_errors_has_a_code_of_its_own() -> None:
    classes = [getattr(acpdb, name) for name in acpdb.__all__ if name.endswith("Error")]
    assert all(issubclass(kind, acpdb.Error) for kind in classes)
    codes = [kind.code for kind in classes]
    assert len(set(codes)) == len(codes)


def test_what_keeps_a_store_refuses_what_it_cannot_use(store: Store, tmp_path: Path) -> None:
    session = store.session("s1")
    session.append(Entry.message("user", "hello"))
    wrong, head = cast(Any, store), store.head()
    table: list[tuple[Callable[[], object], type[Exception], str]] = [
        (lambda: acpdb.open(tmp_path / "b", passphrase=LONE * 9), acpdb.InvalidError, "surrogate"),
        (lambda: acpdb.open(tmp_path / "b", passphrase="short"), acpdb.InvalidError, "8 bytes"),
        (lambda: acpdb.open(tmp_path / "b", passphrase="0123456789", key_file="x"), acpdb.InvalidError, "not both"),
        (lambda: acpdb.open(tmp_path / "b", key_file=tmp_path), acpdb.LockedError, "no key"),
        (lambda: store.erase(""), acpdb.NotFoundError, "no item"),
        (lambda: store.erase("#1", reason="x" * 5000), acpdb.TooLargeError, "4096"),
        (lambda: wrong.erase(1), TypeError, "str"),
        (lambda: store.erase_records(-1), acpdb.InvalidError, "out of range"),
        (lambda: store.erase_records(10**9), acpdb.InvalidError, "no host's record"),
        (lambda: wrong.erase_records("1"), TypeError, "integer"),
        (lambda: wrong.seal(active="yes"), TypeError, "bool"),
        (lambda: store.backup(store.path), acpdb.StorageError, "make a backup"),
        (lambda: acpdb.restore(tmp_path / "nothing", tmp_path / "c"), acpdb.NotAStoreError, "not an acpdb store"),
        (lambda: acpdb.restore(store.path, tmp_path), acpdb.StorageError, "exists"),
        (lambda: acpdb.stores_in(tmp_path / "nothing"), acpdb.StorageError, "cannot list"),
        (lambda: session.fork(LONE), acpdb.InvalidError, "surrogate"),
        (lambda: session.fork(at="t99"), acpdb.NotFoundError, "no turn"),
    ]
    for number, (call, kind, says) in enumerate(table):
        with pytest.raises(kind) as caught:
            call()
        assert says in str(caught.value), number
    assert store.head() == head and [*tmp_path.iterdir()] == [Path(store.path)]


class Odd:
    """A value that fails when it is told."""

    def __fspath__(self) -> int:
        return 7

    def __repr__(self) -> str:
        raise RuntimeError("odd")


#: Values of every kind, for arguments of every kind.
ANY: dict[str, Any] = {
    "nothing": None, "minus one": -1, "2**63": 2**63, "2**70": 2**70, "half": 1.5, "nan": math.nan, "inf": math.inf, "true": True,
    "empty": "", "lone": LONE, "nul": "\0", "a word": "x", "digits": "9" * 30, "a name": "#" + "9" * 30, "a turn": "t" + "9" * 30,
    "groups": "(" * 300, "bytes": b"\xff", "buffer": bytearray(b"x"), "list": [], "numbers": [1], "lone in a list": [LONE],
    "nan in a list": [math.nan], "dict": {}, "numbers by numbers": {1: 2}, "lone as a name": {LONE: 1}, "lone by name": {"x": LONE},
    "deep": nested(5000), "cycle": cycle(), "object": object(), "odd": Odd(), "set": {1}, "entry": Entry.message("user", "x"),
}  # fmt: skip
#: Arguments that have to be there, while another one is tried.
USUAL: dict[str, Any] = {
    "role": "user", "text": "x", "tool": "read", "params": {}, "items": [], "raw": "{}", "micros": 1, "head": 1, "lines": b"", "to": 1,
    "tasks": [], "summaries": {"#3": "x"}, "seq": 1, "entry": Entry.memory("x"), "call": {}, "body": {}, "format": "anthropic",
}  # fmt: skip


def operations(store: Store) -> list[tuple[str, Callable[..., object]]]:
    session = store.session("s1", project="shop")
    session.append(Entry.step("t"), Entry.tool_started("c", "read", {"filePath": "a"}), Entry.tool_finished("c", "text"))
    objects: list[object] = [store, session, session.view(), session.step("t"), Entry, Part]
    found: list[tuple[str, Callable[..., object]]] = [
        (f"{holder!r}.{name}", getattr(holder, name))
        for holder in objects
        for name in dir(holder)
        if not name.startswith("_") and callable(getattr(holder, name)) and name not in ("close", "seal")
    ]
    functions = (acpdb.lint, acpdb.open, acpdb.open_all, acpdb.open_remote, acpdb.restore, acpdb.stores_in, acpdb.verify)
    made = Entry.message("user", "x")
    beside: list[tuple[str, Callable[..., object]]] = [("of_record", made.of_record), ("at_time", made.at_time)]
    return [it for it in found if not it[0].endswith((".of_record", ".at_time"))] + beside + [(it.__name__, it) for it in functions]


def test_any_value_at_any_place_is_used_or_refused_by_a_class_that_is_promised(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten operations raised ValueError, RecursionError or UnicodeEncodeError for what they could not use."""
    monkeypatch.chdir(tmp_path)
    faults: set[str] = set()
    for name, operation in operations(store):
        parameters = list(inspect.signature(operation).parameters.values())
        for tried in parameters:
            for kind, value in ANY.items():
                given: list[Any] = []
                named: dict[str, Any] = {}
                for one in parameters:
                    if one is tried and one.kind is one.KEYWORD_ONLY:
                        named[one.name] = value
                    elif one is tried or (one.default is one.empty and one.kind is not one.VAR_POSITIONAL):
                        given.append(value if one is tried else USUAL.get(one.name, "x"))
                try:
                    made = operation(*given, **named)
                    if isinstance(made, (Store, acpdb.Stores)):
                        made.close()
                except TypeError:
                    pass
                except acpdb.Error as error:
                    if error.code == "error" or not str(error):
                        faults.add(f"{name}({tried.name} = {kind}): {error}")
                except Exception as error:
                    faults.add(f"{name}({tried.name} = {kind}): {type(error).__name__}")
    assert not faults, "\n".join(sorted(faults))
    assert store.verify(deep=True)["verdict"] == "sound"
