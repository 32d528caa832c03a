#!/usr/bin/env python3
"""Asks the program for the same fact in two ways: the answers agree, or one of them is wrong.

    cargo build -p acpdb
    python3 tests/scripts/agree.py --bin target/debug/acpdb [--only LAW ..] [--seed N] [RECORDING ..]
    python3 tests/scripts/agree.py --bin target/debug/acpdb --prove

Imports recordings of hosts (without an argument those in tests/fixtures) and holds the laws that --list prints. Some laws ask
the store as it is, others ask copies of it after an act. A law that counts or filters does so in Python, from the answers
that have all rows. Points in time, words and items are picked by --seed.

Each disagreement is printed with the two answers, at most four of a law; then the exit code is 1. Exit code 2: wrong arguments,
or a program that does not run.

--prove runs the laws against the program behind a wrapper that breaks one of them, for each row of WRAPPERS. The law that the
row names must notice it.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

FIXTURES = pathlib.Path(__file__).resolve().parent.parent / "fixtures" / "hosts"
SHOWN_MAX = 4
# A fault of a program, and the law that must notice it.
WRAPPERS = (
    ("counts a token too many", "sums"),
    ("leaves out the first row of a page", "pages"),
    ("forgets the last row that a filter finds", "filters"),
    ("answers as of now", "points in time"),
    ("does not name what left", "differences"),
    ("forgets who superseded", "chains"),
    ("finds the first place only", "search"),
    ("bills one request twice", "costs"),
    ("sends a result without its call", "bodies"),
    ("answers otherwise after a backup", "copies"),
    ("undoes nothing", "acts"),
    ("erases nothing", "erasures"),
    ("reads each recording anew", "growing recordings"),
)
LAWS = {}


class Noticed(Exception):
    """A law is broken, where that is all that is to be known."""


def law(name: str):
    def keep(function):
        LAWS[name] = function
        return function

    return keep


class Asked:
    """The program under test, asked because of one law, and how often the law held."""

    def __init__(self, law: str, words: list[str], work: pathlib.Path, recordings: list[pathlib.Path], arguments):
        self.law, self.words, self.work, self.recordings = law, words, work, recordings
        self.session_count, self.ends_at_once = arguments.sessions, arguments.prove
        self.held = self.broken = 0
        self.dice = random.Random(f"{law} {arguments.seed}")
        self.environment = {"HOME": str(work), "PATH": os.environ["PATH"], "TZ": "UTC", "LANG": "C.UTF-8"}

    def run(self, store: pathlib.Path, *arguments: object, typed: str | None = None) -> tuple[int, str, str]:
        """The exit code, and the texts on standard output and standard error."""
        command = [*self.words, "--db", str(store), "--no-pager", *map(str, arguments)]
        kept = {"input": typed} if typed is not None else {"stdin": subprocess.DEVNULL}
        done = subprocess.run(
            command, capture_output=True, env=self.environment, check=False, text=True, errors="surrogateescape", **kept
        )
        return done.returncode, done.stdout, done.stderr

    def do(self, store: pathlib.Path, *arguments: object) -> str:
        code, out, error = self.run(store, *arguments)
        self.same(code, 0, arguments, error)
        return out

    def ask(self, store: pathlib.Path, *arguments: object) -> dict:
        """The answer as one JSON value; an empty one if there is none."""
        out = self.do(store, "--json", *arguments)
        return json.loads(out) if out else {}

    def rows(self, store: pathlib.Path, *arguments: object) -> list[dict]:
        return self.ask(store, *arguments).get("items", [])

    def lines(self, store: pathlib.Path, *arguments: object) -> list[dict]:
        """The answer as JSON lines; without those that tell of the page."""
        return [line for line in map(json.loads, self.do(store, "--json", *arguments).splitlines()) if "seq" in line]

    def sessions(self, store: pathlib.Path) -> list[dict]:
        return self.rows(store, "sessions", "--all")

    def picked(self, store: pathlib.Path) -> list[dict]:
        return self.some(self.sessions(store), self.session_count)

    def same(self, one: object, other: object, *where: object) -> None:
        self.held += one == other
        if one == other:
            return
        if self.ends_at_once:
            raise Noticed
        self.broken += 1
        if self.broken <= SHOWN_MAX:
            print(f"DISAGREE {self.law}: {' '.join(map(str, where))[:600]}\n   {str(one)[:600]}\n   {str(other)[:600]}", flush=True)

    def copy(self, store: pathlib.Path, name: str) -> pathlib.Path:
        to = self.work / name
        shutil.rmtree(to, ignore_errors=True)
        shutil.copytree(store, to)
        return to

    def some(self, values: list, count: int) -> list:
        return self.dice.sample(values, min(count, len(values)))


def without(row: dict, *names: str) -> dict:
    return {name: value for name, value in row.items() if name not in names}


def ids(rows: list[dict]) -> list[str]:
    return [row["item"] for row in rows]


def in_order(rows: list[dict]) -> list[dict]:
    """Rows in the order of their events; a context has a summary before the messages that stay behind it."""
    return sorted((without(row, "input", "output", "session") for row in rows), key=lambda row: (row["seq"], row["item"]))


@law("sums")
def sums(asked: Asked, store: pathlib.Path) -> None:
    """Lists, contexts, histories, statistics and logs count the same."""
    sessions, total = asked.sessions(store), asked.ask(store, "stats")["total"]
    for name in ("calls", "superseded", "tokens", "tokens_shown", "tokens_freed"):
        asked.same(total[name], sum(session[name] for session in sessions), name)
    log = asked.lines(store, "log")
    asked.same(len(log), asked.ask(store, "verify", "--head")["seq"])
    for session in asked.some(sessions, asked.session_count):
        name = session["id"]
        context, history = asked.ask(store, "context", name, "--full"), asked.rows(store, "history", "-s", name)
        stats = asked.ask(store, "stats", "-s", name)["total"]
        inside = [row for row in history if row["in_context"]]
        asked.same(in_order(context["items"]), in_order(inside), name)
        asked.same(context["item_count"], len(inside), name)
        # A call without a result has none that could be hidden.
        asked.same(context["hidden_count"], sum(row["state"] not in ("whole", "absent") for row in inside), name)
        shown = (context["tokens_shown"], sum(row["tokens_shown"] for row in inside))
        asked.same(shown, (session["tokens_shown"], stats["tokens_shown"]), name)
        asked.same((session["tokens"], stats["tokens"]), (sum(row["tokens"] for row in history),) * 2, name)
        asked.same((session["calls"], stats["calls"]), (sum(row["kind"] == "call" for row in history),) * 2, name)
        superseded = sum(bool(row["superseded_by"]) for row in history)
        asked.same((session["superseded"], stats["superseded"]), (superseded,) * 2, name)
        own = asked.lines(store, "log", "-s", name)
        asked.same(own, [event for event in log if event["session"] == name], name)
        asked.same((session["first"], session["head"]), (own[0]["seq"], own[-1]["seq"]), name)
        for row in context["items"]:
            faces = [row[face] for face in ("input", "output") if row[face]]
            asked.same(row["tokens_shown"], sum(face["tokens_shown"] for face in faces), name, row["item"])


@law("pages")
def pages(asked: Asked, store: pathlib.Path) -> None:
    """Pages of a list are the list."""
    for question in (["history", "--all"], ["sessions", "--all"], ["sessions", "--all", "--sort", "tokens"]):
        whole = asked.rows(store, *question, "--limit", 100_000)
        limit, rows, cursor = max(1, len(whole) // 7), [], None
        while True:
            page = asked.ask(store, *question, "--limit", limit, *(["--after", cursor] if cursor else []))
            rows += page.get("items", [])
            cursor = page.get("next_cursor")
            if not cursor:
                break
        asked.same(rows, whole, *question)


@law("filters")
def filters(asked: Asked, store: pathlib.Path) -> None:
    """A filter finds the rows that it describes; `and`, `or` and `not` are those of sets."""
    history, log = asked.rows(store, "history", "--all"), asked.lines(store, "log")
    hosts = {session["id"]: session["host"] for session in asked.sessions(store)}
    known = {}
    for tool in {row["tool"] for row in history if row["tool"]}:
        known[f'tool:"{tool}"'] = lambda row, tool=tool: (row["tool"] or "").lower() == tool.lower()
    for field in ("kind", "status", "rule"):
        for value in {row[field] for row in history if row[field]}:
            known[f"{field}:{value}"] = lambda row, field=field, value=value: row[field] == value
    for host in set(hosts.values()):
        known[f"host:{host}"] = lambda row, host=host: hosts[row["session"]] == host
    for count in (1, 10, 100, 1000):
        known[f"tokens:>{count}"] = lambda row, count=count: row["tokens"] > count
        known[f"tokens:{count}..{3 * count}"] = lambda row, count=count: count <= row["tokens"] <= 3 * count
        known[f"seq:{count}.."] = lambda row, count=count: row["seq"] >= count
        known[f"turn:..{count}"] = lambda row, count=count: row["turn"] <= count

    def found(*query: str) -> list[str]:
        return ids(asked.rows(store, "history", "--", *query))

    for query, holds in known.items():
        asked.same(found(query), ids(filter(holds, history)), query)
    for _ in range(12):
        (a, is_a), (b, is_b), (c, is_c) = asked.some(list(known.items()), 3)
        for query, holds in (
            (f"({a}) or ({b})", lambda row: is_a(row) or is_b(row)),
            (f"{a} {b}", lambda row: is_a(row) and is_b(row)),
            (f"not {a} ({b} or not {c})", lambda row: not is_a(row) and (is_b(row) or not is_c(row))),
        ):
            asked.same(found(query), ids(filter(holds, history)), query)
    for glob in ("**", "src/**", "**/*.md", "1"):
        rows = asked.rows(store, "history", "--", f"file:{glob}")
        calls = asked.lines(store, "log", "--", f"file:{glob}", "kind:tool_call_started")
        # History goes session by session, and a subagent's calls stand between those of its parent in the log.
        asked.same(sorted(row["seq"] for row in rows), [call["seq"] for call in calls], "file", glob)
        asked.same(found(f"file:{glob} or text:nowhere.at.all"), ids(rows), "file", glob, "or a text")
    for query, holds in asked.some(list(known.items()), 12):
        matches = collections.Counter(row["session"] for row in filter(holds, history))
        rows = asked.rows(store, "sessions", "--all", "--", query)
        asked.same({row["id"]: row["matches"] for row in rows}, dict(matches), "sessions", query)
    for field in ("kind", "actor"):
        for value in {event[field] for event in log}:
            rows = asked.lines(store, "log", "--", f"{field}:{value}")
            asked.same([row["seq"] for row in rows], [event["seq"] for event in log if event[field] == value], field, value)


def points(asked: Asked, session: dict, count: int) -> list[int]:
    return sorted(asked.dice.randint(session["first"], session["head"]) for _ in range(count))


@law("points in time")
def points_in_time(asked: Asked, store: pathlib.Path) -> None:
    """At a point in time all answers agree, and none knows a later event."""
    for session in asked.picked(store):
        name = session["id"]
        for seq in points(asked, session, 3):
            at = ("--at", f"#{seq}")
            context = asked.ask(store, "context", name, *at)
            history = asked.rows(store, "history", "-s", name, *at)
            inside = [row for row in history if row["in_context"]]
            asked.same(in_order(context["items"]), in_order(inside), name, seq)
            later = [row["item"] for row in history if row["seq"] > seq]
            asked.same(later, [], name, seq)
            causes = [row["superseded_by"] for row in history if row["superseded_by"]]
            asked.same([cause for cause in causes if int(re.match(r"#(\d+)", cause)[1]) > seq], [], name, seq)
            answer = asked.ask(store, "context", name, "--summary", *at)
            figures = ("item_count", "tokens_shown", "hidden_count", "turn")
            asked.same([answer[figure] for figure in figures], [context[figure] for figure in figures], name, seq)
            total = asked.ask(store, "stats", "-s", name, *at)["total"]
            asked.same(total["tokens"], sum(row["tokens"] for row in history), name, seq)
        by_turn = session["tokens_by_turn"]
        if len(by_turn) == session["turns"] and not session["rewinds"]:
            for turn in asked.some(range(1, session["turns"] + 1), 3):
                asked.same(asked.ask(store, "context", name, "--summary", "--at", f"t{turn}")["tokens_shown"], by_turn[turn - 1], name, turn)


@law("differences")
def differences(asked: Asked, store: pathlib.Path) -> None:
    """A difference leads from one context to the other, and the difference back undoes it."""
    for session in [session for session in asked.picked(store) for _ in range(2)]:
        name = session["id"]
        first, last = points(asked, session, 2)
        contexts = (asked.rows(store, "context", name, "--at", f"#{seq}") for seq in (first, last))
        before, after = ({row["item"]: row for row in rows} for rows in contexts)
        there, back = (asked.ask(store, "diff", f"#{a}", f"#{b}", "-s", name) for a, b in ((first, last), (last, first)))
        # An item that came and went in between is told on the way there, and has nothing to take back.
        both = before.keys() | after.keys()
        rows = {row["item"]: row for row in there["items"] if row["item"] in both}
        asked.same({item for item in rows if item not in before}, after.keys() - before.keys(), name, first, last)
        asked.same({item for item in rows if item not in after}, before.keys() - after.keys(), name, first, last)
        for item, row in rows.items():
            shown = tuple(side.get(item, {}).get("tokens_shown", 0) for side in (before, after))
            asked.same((row["tokens_before"], row["tokens_after"]), shown, name, first, last, item)
        alike = ("state", "tokens_shown", "pinned")
        changed = {
            item for item in before.keys() & after.keys() if any(before[item][field] != after[item][field] for field in alike)
        }
        asked.same(changed - rows.keys(), set(), name, first, last)
        turned = sorted((row["item"], row["tokens_after"], row["tokens_before"]) for row in back["items"] if row["item"] in both)
        straight = sorted((row["item"], row["tokens_before"], row["tokens_after"]) for row in rows.values())
        asked.same(turned, straight, name, first, last)


@law("chains")
def chains(asked: Asked, store: pathlib.Path) -> None:
    """An item and the item that superseded it stand in one chain, in their order; explanations and rows agree."""
    for session in asked.picked(store):
        name = session["id"]
        history = asked.rows(store, "history", "-s", name)
        for row in asked.some([row for row in history if row["superseded_by"]], 3):
            ends = [row["item"], row["superseded_by"]]
            for end in ends:
                chain = ids(asked.rows(store, "history", "--chain", end, "-s", name))
                asked.same([item for item in chain if item in ends], ends, name, end)
        for row in asked.some(history, 3):
            told = asked.ask(store, "explain", row["item"], "-s", name)
            for field in ("state", "in_context", "tokens_shown", "superseded_by"):
                asked.same(told[field], row[field], name, row["item"], field)


def leaves(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [leaf for part in inner for leaf in leaves(part)]


def parsed(text: object) -> object:
    """Parameters are JSON in a text; other texts are themselves."""
    try:
        value = json.loads(text) if isinstance(text, str) else text
    except ValueError:
        return text
    return value if isinstance(value, (dict, list)) else text


# In place of pictures and the like an export says what they are; a search reads what was recorded.
MEDIA = re.compile(r"\[media [^\]\n]*\]")


@law("search")
def search(asked: Asked, store: pathlib.Path) -> None:
    """A search finds a word where an export shows it; `text:` finds the same items, and sessions count them."""
    rows = [json.loads(line) for line in asked.do(store, "export", "jsonl").splitlines()]
    texts = {
        f"{row['item']}/{face}": (MEDIA.sub("", "\n".join(leaves(parsed(row[face])))), json.dumps(row[face], ensure_ascii=False))
        for row in rows
        for face in ("input", "output")
        if row.get(face) is not None
    }
    words = collections.Counter(word for text, _ in texts.values() for word in set(re.findall(r"[A-Za-z]{4,12}", text)))
    for word in asked.some(sorted(word for word, count in words.items() if count > 1), 12):
        pattern = re.compile(re.escape(word), 0 if word != word.lower() else re.IGNORECASE)
        found = asked.rows(store, "search", "--limit", 100_000, "--", word)
        places = {f"{row['item']}/{row['face']}" for row in found if row.get("row")}
        # Names of parameters are found, too; an export shows them as a part of JSON.
        least = {place for place, (text, _) in texts.items() if pattern.search(text)}
        most = {place for place, both in texts.items() if any(map(pattern.search, both))}
        asked.same((least - places, places - most), (set(), set()), word)
        items = asked.rows(store, "history", "--", f"text:{word}")
        asked.same(sorted(set(ids(items))), sorted({place.rsplit("/", 1)[0] for place in places}), word)
        # Nothing found is exit code 1.
        code, out, error = asked.run(store, "--json", "search", "--limit", 100_000, "--", word, "not", "kind:call")
        asked.same(code in (0, 1), True, word, "not", error)
        others = {row["item"] for row in json.loads(out)["items"] if row.get("row")}
        asked.same(others, {row["item"] for row in items if row["kind"] != "call"}, word, "not")
        matches = collections.Counter(row["session"] for row in items)
        counted = asked.rows(store, "sessions", "--all", "--", f"text:{word}")
        asked.same({row["id"]: row["matches"] for row in counted}, dict(matches), word)


@law("costs")
def costs(asked: Asked, store: pathlib.Path) -> None:
    """The parts of a bill are the bill, however it is cut, and a session's part is that session's bill."""
    whole = asked.ask(store, "cost")["sum"]
    for by in ("day", "week", "session", "project", "host", "model"):
        answer = asked.ask(store, "cost", "--by", by)
        asked.same(answer["sum"], whole, by)
        asked.same(sum(row["requests"] for row in answer["items"]), whole["requests"], by)
        for kind, count in whole["tokens"].items():
            asked.same(sum(row["tokens"][kind] for row in answer["items"]), count, by, kind)
        total = sum(row["total"] for row in answer["items"])
        asked.same(abs(total - whole["total"]) < 1e-4, True, by, total, whole["total"])
    for row in asked.rows(store, "cost", "--by", "session"):
        alone = asked.ask(store, "cost", "--by", "model", "-s", row["key"])["sum"]
        asked.same(without(alone, "key", "title"), without(row, "key", "title"), row["key"])
    for row in asked.rows(store, "cost", "--by", "day"):
        if re.match(r"\d", row["key"]):
            day = asked.rows(store, "cost", "--by", "day", "--since", row["key"], "--until", row["key"])
            asked.same(day, [row], row["key"])


@law("bodies")
def bodies(asked: Asked, store: pathlib.Path) -> None:
    """Each provider takes the body of each session, at its end and in its middle."""
    for session in asked.picked(store):
        middle = f"t{max(1, session['turns'] // 2)}"
        for form in ("anthropic", "openai", "responses", "gemini"):
            for more in ((), ("--recorded",), ("--at", middle)):
                code, body, error = asked.run(store, "context", session["id"], "--format", form, *more)
                asked.same(code, 0, session["id"], form, *more, error)
                code, out, error = asked.run(store, "context", "lint", "--format", form, "-", typed=body)
                asked.same((code, out + error if code else ""), (0, ""), session["id"], form, *more)


QUESTIONS = ("sessions --all", "stats", "history --all", "log", "cost --by model", "todo list", "memory list", "search e", "log --texts")


def answers(asked: Asked, store: pathlib.Path, names: list[str]) -> dict[str, str]:
    told = {question: asked.run(store, "--json", *question.split())[1] for question in QUESTIONS}
    for name in names:
        for question in (("context", name, "--full"), ("history", "-s", name), ("export", "html", name, "-o", "-")):
            told[" ".join(question)] = asked.run(store, *(["--json"] if question[0] != "export" else []), *question)[1]
    return told


def agree(asked: Asked, one: dict[str, str], other: dict[str, str], *where: object) -> None:
    for question, answer in one.items():
        asked.same(answer, other.get(question), *where, question)


@law("copies")
def copies(asked: Asked, store: pathlib.Path) -> None:
    """A backup, a sealed and an indexed copy, and one without index and saved folds answer each byte the same."""
    names = [session["id"] for session in asked.some(asked.sessions(store), 4)]
    told = answers(asked, store, names)
    copy = asked.work / "backup"
    shutil.rmtree(copy, ignore_errors=True)
    asked.do(store, "backup", copy)
    agree(asked, told, answers(asked, copy, names), "backup")
    for verb in (("seal", "--all"), ("reindex",), ("verify", "--deep")):
        asked.do(copy, *verb)
        agree(asked, told, answers(asked, copy, names), *verb)
    bare = asked.copy(store, "bare")
    for path in [path for path in bare.rglob("*") if path.is_file() and path.name.startswith(("index", "snap", "kept", "cache"))]:
        path.unlink()
    agree(asked, told, answers(asked, bare, names), "without index")


def state(asked: Asked, store: pathlib.Path, name: str) -> tuple:
    alike = ("item", "state", "cause", "pinned", "tokens_shown", "in_context", "superseded_by")
    history = [tuple(row[field] for field in alike) for row in asked.rows(store, "history", "-s", name)]
    return history, asked.run(store, "context", name, "--format", "anthropic")[1]


@law("acts")
def acts(asked: Asked, store: pathlib.Path) -> None:
    """What is undone is as before, what is redone is as after; a fork has the context that it left, and a rewind goes there."""
    sessions = [session for session in asked.sessions(store) if session["turns"] > 3]
    copy = asked.copy(store, "acts")
    for session in asked.some(sessions, 5):
        name = session["id"]
        states, head = [state(asked, copy, name)], asked.ask(copy, "verify", "--head")["seq"]
        inside = ids(row for row in asked.rows(copy, "history", "-s", name) if row["in_context"])
        for act in ("discard", "distill", "pin", "discard"):
            item = asked.dice.choice(inside)
            # Not every act suits every item; then nothing is recorded.
            asked.run(copy, "context", act, "-s", name, f"{item}=in short" if act == "distill" else item)
            if (now := asked.ask(copy, "verify", "--head")["seq"]) != head:
                states.append(state(asked, copy, name))
                head = now
        for back in states[-2::-1]:
            asked.do(copy, "undo", "-s", name)
            asked.same(state(asked, copy, name), back, name, "undo")
        for forth in states[1:]:
            asked.do(copy, "undo", "--redo", "-s", name)
            asked.same(state(asked, copy, name), forth, name, "redo")
        asked.do(copy, "policy", "set", "automatic=false", "-s", name)
        asked.do(copy, "policy", "set", "automatic=true", "-s", name)
        asked.same(state(asked, copy, name), states[-1], name, "policy")
        middle = f"t{session['turns'] // 2}"
        at = asked.rows(copy, "context", name, "--full", "--at", middle)
        asked.do(copy, "fork", name, "--at", middle, "--id", f"fork of {name}")
        forked = asked.rows(copy, "context", f"fork of {name}", "--full")
        own, forked = ([without(row, "session") for row in rows] for rows in (at, forked))
        asked.same(forked, own, name, "fork", middle)
        # A rewind brings nothing back that an earlier one took off the branch.
        if not session["rewinds"]:
            asked.do(copy, "rewind", middle, "-s", name)
            asked.same(asked.rows(copy, "context", name, "--full"), at, name, "rewind", middle)
    asked.do(copy, "verify", "--deep")


@law("erasures")
def erasures(asked: Asked, store: pathlib.Path) -> None:
    """An erased text is in no answer and in no file; all else is as before."""
    rows = [json.loads(line) for line in asked.do(store, "export", "jsonl").splitlines()]
    items = {row["item"]: row for row in rows if row.get("item")}
    # A text that stands within another one, which is not erased, would be found there.
    whole = [text for row in rows for face in ("input", "output") for text in leaves(parsed(row.get(face)))]
    alone = [
        (item, row["output"])
        for item, row in items.items()
        if isinstance(row.get("output"), str)
        and len(row["output"]) > 60
        and not any(row["output"] in text and row["output"] != text for text in whole)
    ]
    for item, text in asked.some(alone, 5):
        name = items[item]["session"]
        copy = asked.copy(store, "erased")
        asked.do(copy, "erase", item, "-s", name, "--reason", "a law", "--by", "a law")
        for verb in (("context", name, "--full"), ("show", item), ("log", "--texts"), ("export", "html", name, "-o", "-"), ("scan",)):
            code, out, error = asked.run(copy, *verb)
            asked.same(code in (0, 1), True, *verb, code, error)
            asked.same(text in out, False, item, *verb)
        asked.do(copy, "reindex")
        asked.do(copy, "verify", "--deep")
        needles = (text.encode(), json.dumps(text).encode()[1:-1])
        held = [path.name for path in copy.rglob("*") if path.is_file() and any(needle in path.read_bytes() for needle in needles)]
        asked.same(held, [], item, text[:60])
        alike = ("state", "in_context", "superseded_by", "turn", "kind", "tokens")
        for row in map(json.loads, asked.do(copy, "export", "jsonl").splitlines()):
            # The same text in another item is erased, too.
            if row.get("item") in items and row["state"] != "gone":
                asked.same([row[field] for field in alike], [items[row["item"]][field] for field in alike], item, row["item"])


@law("growing recordings")
def growing_recordings(asked: Asked, store: pathlib.Path) -> None:
    """A recording that is read while it grows is, in the end, recorded as if it had been read once."""
    paths = [path for path in asked.recordings if path.suffix == ".jsonl" and path.stat().st_size < 1_000_000]
    for path in asked.some(paths, 6):
        folder = asked.work / "growing"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        copy, data = folder / path.name, path.read_bytes()
        stores = [folder / "once", folder / "often"]
        copy.write_bytes(data)
        asked.do(stores[0], "import", copy)
        for end in sorted(asked.dice.randrange(1, len(data)) for _ in range(3)):
            # A piece of a recording may be no recording yet.
            copy.write_bytes(data[:end])
            asked.run(stores[1], "import", copy)
        copy.write_bytes(data)
        asked.do(stores[1], "import", copy)
        # A session whose folder is named behind the first piece is changed, where it would have been opened with it; an item of which
        # a later line says more is revised, where it would have been recorded with that; a reminder that was read before the request which
        # moves it into a result was a message until then. Contexts are compared below.
        logs = [[event["kind"] for event in asked.lines(store, "log")] for store in stores]
        later = ("session_changed", "item_revised", "message_recorded")
        asked.same(*(collections.Counter(kind for kind in log if kind not in later) for log in logs), path.name)
        asked.do(stores[1], "import", copy)
        asked.same(len(asked.lines(stores[1], "log")), len(logs[1]), path.name, "again")
        for session in asked.sessions(stores[0]):
            states = [state(asked, store, session["id"]) for store in stores]
            # Where pieces were recorded in other commits, seqs differ; contexts do not.
            asked.same(*(told[1] for told in states), path.name, session["id"])


def hold(words: list[str], arguments: argparse.Namespace, laws: list[str]) -> list[Asked]:
    work = pathlib.Path(tempfile.mkdtemp(prefix="acpdb-agree-"))
    try:
        given = arguments.recordings or sorted(FIXTURES.glob("*/*/recording"))
        recordings = sorted(path for one in given for path in ([one] if one.is_file() else one.rglob("*")) if path.is_file())
        store = work / "store"
        asked = [Asked(law, words, work, recordings, arguments) for law in laws]
        # A folder of a host has other files beside its recordings: their warnings end with another exit code.
        code, _, error = asked[0].run(store, "import", *given)
        if not (store / "acpdb.json").exists():
            sys.exit(f"no store: exit code {code}: {error[-400:]}")
        # A law waits for the program most of the time.
        with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
            for done in [pool.submit(LAWS[one.law], one, store) for one in asked]:
                done.result()
        return asked
    finally:
        shutil.rmtree(work)


def prove(arguments: argparse.Namespace) -> int:
    is_well = True
    arguments.recordings = [FIXTURES / "claude" / "main" / "recording", FIXTURES / "codex" / "main" / "recording"]
    for fault, law in WRAPPERS:
        try:
            hold([sys.executable, __file__, "--as-if", fault, "--bin", arguments.bin, "--"], arguments, [law])
            said, is_well = "NOT NOTICED", False
        except Noticed:
            said = "noticed"
        print(f"a program that {fault}: {said} by {law}", flush=True)
    return 0 if is_well else 1


def as_if(fault: str, program: str, arguments: list[str]) -> int:
    """The program behind a wrapper that breaks one law."""
    verbs = [word for word in arguments[2:] if not word.startswith("--")]
    if fault == "answers as of now" and "context" in verbs and "--at" in arguments:
        place = arguments.index("--at")
        del arguments[place : place + 2]
    if fault == "undoes nothing" and "undo" in verbs or fault == "erases nothing" and "erase" in verbs:
        return 0
    if fault == "reads each recording anew" and "import" in verbs:
        typed = json.dumps({"session": "again", "message": {"role": "user", "text": "again"}}) + "\n"
        subprocess.run([program, *arguments[:2], "append", "--stdin"], input=typed, text=True, capture_output=True, check=False)
    typed = sys.stdin.buffer.read() if "lint" in verbs else b""
    done = subprocess.run([program, *arguments], input=typed, capture_output=True, check=False)
    out = done.stdout.decode(errors="surrogateescape")
    if verbs and done.returncode == 0:
        out = falsified(fault, verbs, arguments, out)
    sys.stdout.buffer.write(out.encode(errors="surrogateescape"))
    sys.stderr.write(done.stderr.decode())
    return done.returncode


def falsified(fault: str, verbs: list[str], arguments: list[str], out: str) -> str:
    verb = verbs[0]
    if fault == "sends a result without its call" and verb == "context":
        return re.sub(r'"id": ?"(call|toolu)', '"id":"other', out, count=1)
    if "--json" not in arguments or not out.startswith("{") or out.count("\n") > 1:
        return out
    answer = json.loads(out)
    items = answer.get("items")
    if fault == "counts a token too many" and verb == "stats":
        answer["total"]["tokens"] += 1
    elif fault == "leaves out the first row of a page" and "--after" in arguments:
        del items[0]
    elif fault == "forgets the last row that a filter finds" and verb == "history" and "--" in arguments:
        del items[-1:]
    elif fault == "does not name what left" and verb == "diff":
        del items[-1:]
    elif fault == "forgets who superseded" and "--chain" in arguments:
        del items[-1:]
    elif fault == "finds the first place only" and verb == "search":
        del items[1:]
    elif fault == "bills one request twice" and verb == "cost" and "-s" in arguments:
        answer["sum"]["requests"] += 1
    elif fault == "answers otherwise after a backup" and arguments[1].endswith("/backup"):
        answer["more"] = True
    else:
        return out
    return json.dumps(answer)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", help="the program, as it was built")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**9), help="default: random")
    parser.add_argument("--sessions", type=int, default=12, help="sessions that a law about one session takes (default 12)")
    parser.add_argument("--only", action="append", choices=LAWS, metavar="LAW", help="only this law; may be repeated")
    parser.add_argument("--list", action="store_true", help="print the laws")
    parser.add_argument("--prove", action="store_true", help="check that broken programs are caught")
    parser.add_argument("--as-if", help=argparse.SUPPRESS)
    parser.add_argument("recordings", nargs="*", metavar="RECORDING", help="files and folders of hosts")
    arguments = parser.parse_args()
    if arguments.list:
        for name, function in LAWS.items():
            print(f"{name}: {function.__doc__}")
        return 0
    if arguments.as_if:
        return as_if(arguments.as_if, arguments.bin, arguments.recordings)
    arguments.bin = os.path.abspath(arguments.bin or "acpdb")
    if not os.access(arguments.bin, os.X_OK):
        parser.error(f"no program at {arguments.bin}")
    arguments.recordings = [pathlib.Path(path).resolve() for path in arguments.recordings]
    print(f"seed {arguments.seed}", flush=True)
    if arguments.prove:
        return prove(arguments)
    all_asked = hold([arguments.bin], arguments, arguments.only or list(LAWS))
    for asked in all_asked:
        print(f"{asked.law}: {asked.held} agree, {asked.broken} disagree")
    return 1 if any(asked.broken for asked in all_asked) else 0


if __name__ == "__main__":
    sys.exit(main())
