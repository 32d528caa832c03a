"""Random conversations, and the judge of what an adapter sends and records of them. Neither knows an adapter.

Ids of calls are those that models give: unique, restarting with each answer or run, the tool's name, or empty; also twice in one answer.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from dataclasses import dataclass, field

import acpdb

PATHS = ["a.rs", "b.rs", "c.rs"]


@dataclass
class Call:
    id: str
    tool: str
    args: dict[str, str]
    output: str
    is_finished: bool = True


@dataclass
class Run:
    prompt: str
    turns: list[list[Call]]
    answer: str
    #: Whether the framework tells all earlier runs again before the prompt.
    continues: bool


@dataclass
class Truth:
    """What really happened, in the order of the calls."""

    calls: list[Call] = field(default_factory=list)

    def lose(self, turn: list[Call], *, are_told: bool) -> None:
        """A run broke off, and the framework never told how its last calls ended, or not even the calls."""
        for call in turn:
            call.is_finished = False
        if not are_told:
            self.calls = [it for it in self.calls if all(it is not call for call in turn)]

    def judge(self, sent: Iterable[tuple[Call, str]]) -> None:
        """Each output is whole unless a later equal call, or an edit of the file, stands after it."""
        for call, text in sent:
            if text == call.output:
                continue
            later = self.calls[next(n for n, it in enumerate(self.calls) if it is call) + 1 :]
            assert any(
                it.is_finished
                and ((it.tool, it.args) == (call.tool, call.args) or (it.tool == "edit" and it.args["filePath"] == call.args["filePath"]))
                for it in later
            ), f"{call} is sent as {text!r}, after it stand {[(it.tool, it.args) for it in later]}"

    def check(self, session: acpdb.Session) -> None:
        """The log has each call once, with what it was given and what it gave."""
        view = session.view()
        rows = [row for row in view.history() if row["kind"] == "call"]
        told = [(row["tool"], json.loads(view.body(row["item"], "input")), view.body(row["item"]).decode()) for row in rows]
        assert told == [(it.tool, it.args, it.output if it.is_finished else "") for it in self.calls]


def runs(draw: random.Random) -> list[Run]:
    versions = dict.fromkeys(PATHS, 0)
    style = draw.choice(["unique", "restart", "run", "tool", "empty", "one", "mixed"])
    count = 0

    def id(tool: str, place: int, in_run: int) -> str:
        how = draw.choice(["unique", "restart", "tool", "empty"]) if style == "mixed" else style
        return {
            "unique": f"call_{count}",
            "restart": f"{tool}:{place}",
            "run": f"call_{in_run}",
            "tool": tool,
            "empty": "",
            "one": "x",
        }[how]

    made: list[Run] = []
    for _ in range(draw.randint(1, 4)):
        turns: list[list[Call]] = []
        in_run = 0
        for _ in range(draw.randint(0, 4)):
            turn: list[Call] = []
            for place in range(draw.choice([1, 1, 1, 2, 3])):
                tool, path = draw.choice(["read", "read", "read", "edit"]), draw.choice(PATHS)
                count, in_run = count + 1, in_run + 1
                if tool == "edit":
                    versions[path] += 1
                    args = {"filePath": path, "oldString": "x", "newString": str(versions[path])}
                    output = f"{path} is at {versions[path]} now. " * 20
                else:
                    args, output = {"filePath": path}, f"{path} at {versions[path]}\n" * 30
                turn.append(Call(id(tool, place, in_run), tool, args, output))
            turns.append(turn)
        if turns and draw.random() < 0.15:
            for call in turns[-1][draw.randint(0, len(turns[-1]) - 1) :]:
                call.is_finished = False
        prompt = draw.choice(["look", "look again", "go on"])
        made.append(Run(prompt, turns, draw.choice(["done", f"done {count}"]), draw.random() < 0.5))
    return made
