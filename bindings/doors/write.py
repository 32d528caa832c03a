"""Records the lines of `acpdb append --stdin` that stand on standard input, through the package: one commit a line."""

from __future__ import annotations

import json
import sys
from typing import Any

import acpdb
from acpdb import Entry


def entries(line: dict[str, Any]) -> list[Entry]:
    """The facts of a line."""
    made: list[Entry] = []
    for event in line["events"]:
        [(what, it)] = event.items()
        match what:
            case "turn":
                made.append(Entry.step())
            case "message":
                made.append(Entry.message(it["role"], it["text"]))
            case "tool_started":
                made.append(Entry.tool_started(it["call"], it["tool"], it["params"]))
            case "tool_finished":
                made.append(Entry.tool_finished(it["call"], it.get("output"), error=it.get("error")))
            case "todos":
                made.append(Entry.todos(it))
            case "memory":
                made.append(Entry.memory(it["value"], kind=it["kind"], key=it.get("key"), id=it["id"]))
            case "file_changed":
                made.append(Entry.file_changed(it["path"]))
            case _:
                raise AssertionError(what)
    return made


with acpdb.open(sys.argv[1], any_file_system=True, lock_wait=60.0) as store:
    for raw in sys.stdin:
        line = json.loads(raw)
        store.session(line["session"], project=line["project"]).append(*entries(line))
