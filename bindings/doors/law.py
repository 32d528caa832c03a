"""One law, three doors: random sessions are written through the program, Python and Node at the same time, by several processes.

The store then verifies; what was written to a session of one door alone is there in its order; every context is byte for byte
the same through all three doors; and the same facts give the same context, whichever door they came through.

    python law.py PROGRAM FILE-IN-A-FOLDER-THAT-HAS-THE-NODE-PACKAGE [RUNS] [SEED]
"""

from __future__ import annotations

import base64
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import acpdb

HERE = Path(__file__).resolve().parent
FORMATS = ["anthropic", "openai", "responses", "gemini", "markdown"]
PROCESSES = 2
TEXTS = ["hello", "größer 🙂", "a\nb\tc", "\u2028 \u0000 \"quoted\" \\", "x" * 3000, "why is the build red?"]


def events(draw: random.Random, prefix: str) -> list[dict[str, Any]]:
    """The facts of one commit."""
    made: list[dict[str, Any]] = [{"turn": True}] if draw.random() < 0.4 else []
    call = f"{prefix}-{draw.randrange(10**9)}"
    path = draw.choice(["src/a.rs", "src/b.rs", "docs/c.md"])
    output = draw.choice(["fn main() {}\n" * 40, "fn other() {}\n" * 30, *TEXTS])
    match draw.randrange(7):
        case 0 | 1:
            tool, params = draw.choice([("read", {"filePath": path}), ("bash", {"command": "make", "n": 1.5})])
            ended = {"call": call, **({"error": "no such file"} if draw.random() < 0.2 else {"output": output})}
            made += [{"tool_started": {"call": call, "tool": tool, "params": params}}, {"tool_finished": ended}]
        case 2 | 3:
            made.append({"message": {"role": draw.choice(["user", "assistant"]), "text": draw.choice(TEXTS)}})
        case 4:
            states = ["pending", "in_progress", "completed"]
            made.append({"todos": [{"content": f"task {n}", "status": draw.choice(states)} for n in range(draw.randrange(4))]})
        case 5:
            value, kind = draw.choice(TEXTS), draw.choice(["fact", "preference", "decision"])
            made.append({"memory": {"id": call, "kind": kind, "key": f"key-{draw.randrange(3)}", "value": value}})
        case _:
            made.append({"file_changed": {"path": path}})
    return made


def plan(seed: int, prefix: str, sessions: list[str], count: int) -> list[str]:
    """Lines of `acpdb append --stdin`."""
    draw = random.Random(seed)
    lines = []
    for _ in range(count):
        line = {"session": draw.choice(sessions), "project": "law", "events": events(draw, prefix)}
        lines.append(json.dumps(line, ensure_ascii=False, separators=(",", ":")))
    return lines


def law(program: str, package: str, seed: int) -> int:
    """One run; how many commits were written."""
    with tempfile.TemporaryDirectory() as folder:
        store = str(Path(folder) / "store")
        acpdb.open(store, any_file_system=True).close()
        doors = {
            "program": [program, "append", "--stdin", "--quiet", "--db", store],
            "python": [sys.executable, str(HERE / "write.py"), store],
            "node": ["node", str(HERE / "write.mjs"), store, package],
        }
        running = []
        twin = plan(seed, "twin", ["SESSION"], 25)
        for door, command in doors.items():
            for number in range(PROCESSES):
                own = f"{door}-{number}"
                lines = plan(seed * 100 + len(running), own, [own, "shared"], 30)
                if number == 0:
                    lines += [line.replace('"SESSION"', f'"twin-{door}"') for line in twin]
                durability = ["os"] if door == "node" and number == 1 else []
                process = subprocess.Popen([*command, *durability], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
                running.append((own, lines, process))
        for own, lines, process in running:
            assert process.stdin is not None
            process.stdin.write(("\n".join(lines) + "\n").encode())
            process.stdin.close()
        for own, _, process in running:
            assert process.stderr is not None
            told = process.stderr.read().decode()
            assert process.wait(120) == 0, f"{own}: {told}"

        def asked(*arguments: str) -> bytes:
            return subprocess.run([program, *arguments, "--db", store], capture_output=True, check=True).stdout

        asked("verify", "--deep")
        node = ["node", str(HERE / "read.mjs"), store, package, *FORMATS]
        by_node = json.loads(subprocess.run(node, capture_output=True, check=True).stdout)
        with acpdb.open(store, any_file_system=True, read_only=True) as opened:
            assert opened.verify(deep=True)["verdict"] == "sound"
            names = [name["id"] for name in opened.names() if name["scope"] == "session"]
            expected = {line_session for _, lines, _ in running for line_session in map(session_of, lines)}
            assert set(names) == expected, f"{names}: {expected}"
            for name in names:
                for format_ in FORMATS:
                    here = opened.session(name).context(format=format_)  # type: ignore[call-overload]
                    # The program also marks where a provider's cache pays; what is said is the same without the marks.
                    there = asked("context", name, "--format", format_, *(["--no-breakpoints"] if format_ == "anthropic" else []))
                    assert here == base64.b64decode(by_node[f"{name} {format_}"]), f"{name} {format_}: Node differs"
                    assert here.rstrip(b"\n") == there.rstrip(b"\n"), f"{name} {format_}: the program differs"
            for own, lines, _ in running:
                calls = [
                    event["tool_started"]["call"]
                    for line in map(json.loads, lines)
                    for event in line["events"]
                    if line["session"] == own and "tool_started" in event
                ]
                found = [row["call"] for row in opened.session(own).history() if row["call"]] if own in names else []
                assert found == calls, f"{own}: the order differs"
            for format_ in FORMATS[:-1]:
                bodies = {bytes(opened.session(f"twin-{door}").context(format=format_)) for door in doors}  # type: ignore[call-overload]
                assert len(bodies) == 1, f"{format_}: the same facts give {len(bodies)} contexts"
        return sum(len(lines) for _, lines, _ in running)


def session_of(line: str) -> str:
    """The session that a line is for."""
    return str(json.loads(line)["session"])


def main() -> None:
    program, package = sys.argv[1], str(Path(sys.argv[2]).resolve())
    runs = int(sys.argv[3]) if len(sys.argv) > 3 else 3
    first = int(sys.argv[4]) if len(sys.argv) > 4 else 20261121
    for seed in range(first, first + runs):
        count = law(program, package, seed)
        print(f"seed {seed}: {count} commits of {3 * PROCESSES} processes through three doors hold")


if __name__ == "__main__":
    main()
