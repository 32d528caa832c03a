#!/usr/bin/env python3
"""Kills the program while it records, and damages its files: nothing acknowledged is lost, and nothing false is shown.

    cargo build -p acpdb
    python3 tests/scripts/torture.py --bin target/debug/acpdb [--rounds N] [--damage-runs N] [--seed N]
    python3 tests/scripts/torture.py --bin target/debug/acpdb --prove

A round of kills feeds `append --stdin --ack` and kills it (SIGKILL) at a random moment. Half of the rounds kill a second writer
while it opens what the first one left. Then
  - `verify` finds the store sound;
  - `list` and `log` show each acknowledged message at the seq of its acknowledgement, with its text;
  - of the messages without an acknowledgement they show the first ones of a run, or none;
  - what they showed once, they show again.
The store goes on from round to round, and a new one begins every tenth.

A damage run copies a store that was closed, and damages one file of the copy: bits flipped, a range zeroed or filled with noise, the
end cut off. Each reading verb then says what it said before the damage, or it reports damage (exit code 3 or 4) and prints
only lines that it printed before. It does not panic, it ends within --timeout seconds, and so does a writer.

The seed is printed and repeats all choices; when a kill hits is up to the machine. The first broken promise ends the run: exit
code 1, and the store stays where the message says. Exit code 2: wrong arguments, or a program that does not run.

--prove runs the same checks against the program behind a wrapper that breaks one promise, for each promise that WRAPPERS names.
Each must be caught, and for the right reason.
"""

import argparse
import collections
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time

# Exit codes of the program by which it reports damage, or a store that it cannot read.
REPORTS = (3, 4)
NOT_FOUND = 7
READS = (("list", "--json"), ("log", "--json"), ("stats",))
# A wrapper's name, the check that it must not pass, and how many rounds and damage runs that takes.
WRAPPERS = (
    ("drops an acknowledged message", "acknowledged and lost", 8, 0),
    ("shows a changed text", "changed", 0, 3),
    ("panics on damage", "panicked", 0, 20),
    ("hangs on damage", "hangs", 0, 20),
    ("is silent on damage", "without a report", 0, 20),
)


class Broken(Exception):
    """A promise that was not kept."""


class Program:
    """The program under test, as the words that start it."""

    def __init__(self, words: list[str], timeout: float):
        self.words, self.timeout = words, timeout

    def start(self, store: pathlib.Path, *arguments: str) -> subprocess.Popen:
        pipe = subprocess.PIPE
        command = [*self.words, "--db", str(store), *arguments]
        return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=environment(store))

    def run(self, store: pathlib.Path, *arguments: str, typed: str = "") -> tuple[int, list[str], str]:
        """The exit code, the lines on standard output and the text on standard error."""
        child = self.start(store, *arguments)
        said = "acpdb " + " ".join(arguments)
        try:
            out, error = child.communicate(typed.encode(), timeout=self.timeout)
        except subprocess.TimeoutExpired:
            child.kill()
            child.communicate()
            raise Broken(f"{said} hangs: no end after {self.timeout} s") from None
        text = error.decode(errors="replace")
        if child.returncode < 0 or child.returncode == 101 or "panicked at" in text:
            raise Broken(f"{said} panicked or died by a signal: exit code {child.returncode}: {text[-400:]}")
        return child.returncode, out.decode(errors="replace").splitlines(), text


def environment(store: pathlib.Path) -> dict[str, str]:
    """No settings and no store of the user's."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ACPDB_")}
    return kept | {"HOME": str(store.parent), "XDG_CONFIG_HOME": str(store.parent / "config")}


def message(number: int, dice: random.Random) -> str:
    """The text of a message. No two are equal, and none can be read as another one that was cut short."""
    return f"message {number} " + f"{number:x}." * dice.choice((1, 10, 100, 1500)) + f" end of {number}"


def line(number: int, text: str) -> str:
    return json.dumps({"session": f"s{number % 2}", "message": {"role": "user", "text": text}}) + "\n"


class Run:
    """One writer from its start to its end: the messages that it was sent, and the seqs that it acknowledged, in order."""

    def __init__(self, program: Program, store: pathlib.Path, first: int, dice: random.Random):
        self.first, self.sent, self.acknowledged, self.dice = first, [], [], dice
        self.timeout = program.timeout
        self.child = program.start(store, "append", "--stdin", "--ack")
        self.complaints = b""
        self.threads = [threading.Thread(target=target, daemon=True) for target in (self.hear, self.read_complaints)]
        for thread in self.threads:
            thread.start()

    def hear(self) -> None:
        for said in self.child.stdout:
            # A line without its end may be half a number.
            if said.endswith(b"\n"):
                self.acknowledged.append(int(said))

    def read_complaints(self) -> None:
        self.complaints = self.child.stderr.read()

    def feed(self, seconds: float, least: int = 0) -> None:
        """Sends messages, some of them ahead of their acknowledgements, until the time is over and there are enough of them."""
        begun = time.monotonic()
        while (passed := time.monotonic() - begun) < self.timeout and self.child.poll() is None:
            if passed > seconds and len(self.acknowledged) >= least:
                return
            if len(self.sent) - len(self.acknowledged) > 8:
                time.sleep(0.0005)
                continue
            number = self.first + len(self.sent)
            text = message(number, self.dice)
            self.sent.append(text)
            try:
                self.child.stdin.write(line(number, text).encode())
                self.child.stdin.flush()
            except BrokenPipeError:
                return

    def wait_for_one(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while not self.acknowledged and self.child.poll() is None and time.monotonic() < until:
            time.sleep(0.001)

    def kill(self) -> None:
        self.end(self.child.kill)

    def end(self, how) -> None:
        ended = self.child.poll()
        how()
        self.child.wait()
        for thread in self.threads:
            thread.join()
        if ended is not None:
            text = self.complaints.decode(errors="replace")
            raise Broken(f"append ended by itself: exit code {ended}: {text[-400:]}")


def close(run: Run) -> None:
    try:
        run.child.stdin.close()
    except BrokenPipeError:
        pass


class Kept:
    """The messages of a store: those that were sent, and those that must be there."""

    def __init__(self):
        self.runs: list[Run] = []
        self.shown: dict[int, str] = {}

    def next_number(self) -> int:
        return sum(len(run.sent) for run in self.runs)

    def check(self, program: Program, store: pathlib.Path) -> None:
        listed = {entry["seq"]: entry["text"] for entry in objects(program, store, "log", "--texts")}
        for run in self.runs:
            for seq, text in zip(run.acknowledged, run.sent):
                if listed.get(seq) != text:
                    raise Broken(f"acknowledged and lost: #{seq} is {listed.get(seq)!r:.80}, and was {text!r:.80}")
        for seq, text in self.shown.items():
            if listed.get(seq) != text:
                raise Broken(f"shown and lost: #{seq} is {listed.get(seq)!r:.80}, and was {text!r:.80}")
        self.check_order([listed[seq] for seq in sorted(listed)])
        recorded = [event["seq"] for event in objects(program, store, "log")]
        if recorded != list(range(1, len(recorded) + 1)):
            raise Broken(f"log: seqs with a gap, or twice: {recorded[-20:]}")
        if missing := listed.keys() - set(recorded):
            raise Broken(f"log: {sorted(missing)} are in the list alone")
        code, said, error = program.run(store, "verify", "--json")
        if code != 0:
            raise Broken(f"verify of a store that was only killed: exit code {code}: {said} {error[-400:]}")
        self.shown = listed

    def check_order(self, texts: list[str]) -> None:
        """Of each run the first messages, in their order, and nothing else."""
        place = {text: (index, at) for index, run in enumerate(self.runs) for at, text in enumerate(run.sent)}
        last = (-1, -1)
        for text in texts:
            if text not in place:
                raise Broken(f"a text that was never sent: {text!r:.120}")
            now = place[text]
            expected = (now[0], last[1] + 1 if now[0] == last[0] else 0)
            if now[0] < last[0] or now != expected:
                raise Broken(f"a gap, or out of order: {text!r:.80} follows message {last[1]} of run {last[0]}")
            last = now


def objects(program: Program, store: pathlib.Path, *words: str) -> list[dict]:
    code, lines, error = program.run(store, *words, "--json")
    if code != 0:
        raise Broken(f"{' '.join(words)} of a store that was only killed: exit code {code}: {error[-400:]}")
    return [json.loads(text) for text in lines]


def kills(program: Program, work: pathlib.Path, rounds: int, dice: random.Random, tally: collections.Counter) -> None:
    store, kept = work / "killed", Kept()
    for number in range(rounds):
        if number % 10 == 0:
            shutil.rmtree(store, ignore_errors=True)
            kept = Kept()
        acknowledged = one_kill(program, store, kept, dice)
        if dice.random() < 0.5:
            again = Run(program, store, kept.next_number(), dice)
            kept.runs.append(again)
            time.sleep(dice.uniform(0, 0.03))
            again.kill()
        # Who goes on after a crash opens the store to write, and messages without an acknowledgement may come back. Whether one did
        # before it is asked is a choice, too. A writer that was killed early may have left no store.
        if dice.random() < 0.5 or not (store / "acpdb.json").exists():
            code, _, error = program.run(store, "append", "--stdin")
            if code != 0:
                raise Broken(f"append of nothing after a kill: exit code {code}: {error[-400:]}")
        kept.check(program, store)
        tally["kills"] += 1
        tally["acknowledged"] += acknowledged


def one_kill(program: Program, store: pathlib.Path, kept: Kept, dice: random.Random) -> int:
    """Feeds a writer and kills it; how many messages it acknowledged."""
    run = Run(program, store, kept.next_number(), dice)
    kept.runs.append(run)
    if dice.random() < 0.25:
        run.feed(dice.uniform(0, 0.04))  # while it opens
        run.kill()
    else:
        feeder = threading.Thread(target=run.feed, args=(program.timeout,), daemon=True)
        feeder.start()
        run.wait_for_one(program.timeout)
        time.sleep(dice.expovariate(1 / 0.04))
        run.kill()
        feeder.join()
    return len(run.acknowledged)


def flipped(data: bytearray, dice: random.Random) -> str:
    bits = [dice.randrange(len(data) * 8) for _ in range(dice.choice((1, 1, 3)))]
    for bit in bits:
        data[bit // 8] ^= 1 << bit % 8
    return f"bits {bits} flipped"


def cut(data: bytearray, dice: random.Random) -> str:
    length = dice.randrange(len(data))
    del data[length:]
    return f"cut to {length} bytes"


def zeroed(data: bytearray, dice: random.Random) -> str:
    return overwritten(data, dice, "zeroed", bytes)


def garbled(data: bytearray, dice: random.Random) -> str:
    return overwritten(data, dice, "garbled", dice.randbytes)


def overwritten(data: bytearray, dice: random.Random, name: str, filled) -> str:
    begin = dice.randrange(len(data))
    end = min(len(data), begin + dice.choice((1, 16, 512, 4096)))
    data[begin:end] = filled(end - begin)
    return f"bytes {begin} to {end} {name}"


def damage(program: Program, work: pathlib.Path, runs: int, dice: random.Random, tally: collections.Counter) -> None:
    whole, copy = work / "whole", work / "damaged"
    run = Run(program, whole, 0, dice)
    run.feed(0.3, least=60)
    run.end(lambda: close(run))
    kept = Kept()
    kept.runs.append(run)
    kept.check(program, whole)
    # Packed bodies in front, others behind, and an index.
    for arguments in (("seal",), ("append", "--stdin"), ("reindex",)):
        typed = "".join(line(number, message(number, dice)) for number in range(10_000, 10_010))
        code, _, error = program.run(whole, *arguments, typed=typed if arguments[0] == "append" else "")
        if code != 0:
            raise Broken(f"{arguments} before any damage: exit code {code}: {error[-400:]}")
    # By its id: where the event that names it is damaged, the name is unknown.
    stream = next(event["stream"] for event in objects(program, whole, "log") if event["session"] == "s0")
    reads = (*READS, ("context", "--session", stream))
    before = {read: program.run(whole, *read)[:2] for read in reads}
    if any(code != 0 for code, _ in before.values()):
        raise Broken(f"a store without damage cannot be read: {before}")
    files = [path for path in sorted(whole.rglob("*")) if path.is_file() and path.stat().st_size > 0]
    logs = [path for path in files if path.suffix == ".seg"]
    for _ in range(runs):
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(whole, copy)
        # Half of the runs damage the log: each change of it must be reported. On a slow disk it is not the largest file. Each other
        # file has its turn.
        path = dice.choice(files if dice.random() < 0.5 else logs)
        path = copy / path.relative_to(whole)
        data = bytearray(path.read_bytes())
        how = dice.choice((flipped, flipped, cut, zeroed, garbled))(data, dice)
        is_changed = bytes(data) != path.read_bytes()
        path.write_bytes(data)
        where = f"{path.relative_to(copy)}: {how}"
        try:
            reports = [right_or_reported(program, copy, read, before[read]) for read in reads]
            found = program.run(copy, "verify", "--json")[0] in REPORTS
            answer = program.run(copy, "append", "--stdin", "--ack", typed=line(0, "late"))[0]
        except Broken as broken:
            raise Broken(f"{where}: {broken}") from None
        # A check of everything sees what one read sees, and each byte of the log.
        if any(reports) and not found:
            raise Broken(f"{where}: a read reports damage, and verify does not")
        if is_changed and path.suffix == ".seg" and not found:
            raise Broken(f"{where}: without a report by verify")
        tally["damaged"] += is_changed
        tally["reported"] += found
        tally["written after"] += answer == 0


def right_or_reported(program: Program, store: pathlib.Path, read: tuple[str, ...], before: tuple[int, list[str]]) -> bool:
    """Whether the read reports damage. All lines are those of before the damage; if one is missing, it does."""
    code, lines, error = program.run(store, *read)
    verb = " ".join(read)
    # A session may not be found since no event of it can be read: that is said beside "no session".
    is_reported = code in REPORTS or (code == NOT_FOUND and "damaged" in error)
    # `context` and `stats` count what they could read; only lists have lines that stand for themselves.
    if "--json" in read or code == 0:
        known = {nameless(text) for text in before[1]} if is_reported else set()
        rest = collections.Counter(lines) - collections.Counter(before[1])
        if changed := [text for text in rest if text not in known]:
            raise Broken(f"{verb} shows what was changed: {changed[0]:.300}")
    if is_reported:
        return True
    if code != 0:
        raise Broken(f"{verb}: exit code {code}, neither an answer nor a report of damage: {error[-400:]}")
    if lines != before[1]:
        raise Broken(f"{verb} without a report: {len(before[1]) - len(lines)} lines are missing, and exit code 0")
    return False


def nameless(text: str) -> str:
    """A line of JSON as it is where the event that names its session cannot be read: with the stream's id."""
    if not text.startswith("{"):
        return text
    shown = json.loads(text)
    if "stream" in shown:
        shown["session"] = shown["stream"]
    return json.dumps(shown, ensure_ascii=False, separators=(",", ":"))


def tortured(words: list[str], arguments: argparse.Namespace) -> str | None:
    """The promise that was broken, if any."""
    program = Program(words, arguments.timeout)
    work = pathlib.Path(tempfile.mkdtemp(prefix="acpdb-torture-"))
    tally: collections.Counter = collections.Counter()
    try:
        # Two rows of choices, so that the number of rounds does not change the damage.
        kills(program, work, arguments.rounds, random.Random(f"kills {arguments.seed}"), tally)
        if arguments.damage_runs:
            damage(program, work, arguments.damage_runs, random.Random(f"damage {arguments.seed}"), tally)
    except Broken as broken:
        return f"{broken} (the store stays in {work})"
    shutil.rmtree(work)
    print(", ".join(f"{name}: {count}" for name, count in tally.items()))
    return None


def prove(arguments: argparse.Namespace) -> int:
    is_well = True
    for name, reason, rounds, runs in WRAPPERS:
        arguments.rounds, arguments.damage_runs = rounds, runs
        arguments.timeout = 5
        found = tortured([sys.executable, __file__, "--as-if", name, "--bin", arguments.bin, "--"], arguments)
        is_caught = found is not None and reason in found
        is_well &= is_caught
        print(f"a program that {name}: {'caught' if is_caught else 'NOT CAUGHT'}: {found}")
        if found and is_caught:
            shutil.rmtree(found.rsplit("(the store stays in ", 1)[1].rstrip(")"))
    return 0 if is_well else 1


def as_if(fault: str, program: str, arguments: list[str]) -> int:
    """The program behind a wrapper that breaks one promise. It is killed like the program."""
    if "append" in arguments and fault == "drops an acknowledged message":
        return append_all_but_one(program, arguments)
    if "append" in arguments:
        # Acknowledgements are to come while messages are sent.
        os.execv(program, [program, *arguments])
    done = subprocess.run([program, *arguments], stdin=sys.stdin, capture_output=True, check=False)
    lines, code = done.stdout.decode().splitlines(keepends=True), done.returncode
    is_damaged = code in REPORTS
    if fault == "panics on damage" and is_damaged:
        code = 101
    if fault == "hangs on damage" and is_damaged:
        time.sleep(3600)
    if fault == "is silent on damage" and is_damaged:
        code = 0
    if fault == "shows a changed text" and "list" in arguments and "damaged" in arguments[1]:
        lines[-1:] = [text.replace("end of", "and of") for text in lines[-1:]]
    sys.stdout.write("".join(lines))
    sys.stderr.write(done.stderr.decode())
    return code


def append_all_but_one(program: str, arguments: list[str]) -> int:
    child = subprocess.Popen([program, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    seq = 0
    for number, text in enumerate(sys.stdin):
        if number == 0:
            # The first one, since a round may end before there is a second one.
            seq += 1
        else:
            child.stdin.write(text.encode())
            child.stdin.flush()
            seq = int(child.stdout.readline())
        print(seq, flush=True)
    child.stdin.close()
    return child.wait()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, help="the program, as it was built")
    parser.add_argument("--rounds", type=int, default=100, help="rounds of kills (default 100)")
    parser.add_argument("--damage-runs", type=int, default=200, help="copies that are damaged (default 200)")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000_000, help="default: the time")
    parser.add_argument("--timeout", type=float, default=30, help="seconds after which a command counts as hanging")
    parser.add_argument("--prove", action="store_true", help="check that broken programs are caught")
    parser.add_argument("--as-if", help=argparse.SUPPRESS)
    parser.add_argument("rest", nargs="*", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.as_if:
        return as_if(arguments.as_if, arguments.bin, arguments.rest)
    arguments.bin = os.path.abspath(arguments.bin)
    if not os.access(arguments.bin, os.X_OK):
        parser.error(f"no program at {arguments.bin}")
    print(f"seed {arguments.seed}", flush=True)
    if arguments.prove:
        return prove(arguments)
    found = tortured([arguments.bin], arguments)
    if found:
        print(f"FAILED: {found}; repeat with --seed {arguments.seed}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
