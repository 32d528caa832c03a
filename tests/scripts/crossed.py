#!/usr/bin/env python3
"""How many files of the sources one tool call crosses: on its way in, and on its way to a context.

    cargo build -p acpdb-cli --config 'profile.dev.package.acpdb-engine.opt-level=0'
    python3 tests/scripts/crossed.py target/debug/acpdb [ROOT] [--names]

Runs the program below callgrind, which says for each function that ran the file it stands in, and counts the files below
ROOT (by default this checkout). Two calls are counted: `append` of a tool call with its output to a session that has two, and
`context` of that session. Each is counted twice: the call alone, and the whole process with its command line and the opening
of the store. The build needs line tables and no optimisation, as `dev` has it for the crates of the program; where functions are
put into each other, fewer files are seen. `--names` prints the files, too.
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

CRATES = ("engine", "query", "hosts", "live", "cli")
# What the program calls once the store is open; they do not call each other.
ALONE = {
    "in": ["acpdb::commands::append::record"],
    "out": ["acpdb::commands::find::view", "acpdb_query::context::context"],
}
# A read, another one, and a later read of the first file, which supersedes it.
CALLS = [("c1", "/a", "one\n"), ("c2", "/b", "two\n"), ("c3", "/a", "1\n")]


def line(call: str, path: str, output: str) -> str:
    tool = {"call": call, "tool": "read", "params": {"filePath": path}, "output": output}
    return json.dumps({"session": "s", "turn": True, "tool": tool}) + "\n"


def ran(command: list[str], typed: str, alone: list[str]) -> set[str]:
    """The files with a line that ran, as callgrind spells them."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "out"
        tool = ["valgrind", "--tool=callgrind", "--compress-strings=no", "--compress-pos=no"]
        toggles = [f"--toggle-collect={name}" for name in alone]
        whole = [*tool, f"--callgrind-out-file={out}", *toggles, *command]
        subprocess.run(whole, input=typed, text=True, check=True, capture_output=True)
        return lines_ran(out.read_text())


def lines_ran(profile: str) -> set[str]:
    files, of_function, file, is_call = set(), "", "", False
    for row in profile.splitlines():
        if found := re.match(r"fl=(.*)", row):
            of_function = file = found[1]
        elif row.startswith("fn="):
            file = of_function
        elif found := re.match(r"f[ie]=(.*)", row):
            file = found[1]  # of functions that were put into this one
        elif row.startswith("calls="):
            is_call = True  # the next row is the cost of what is called
        elif found := re.match(r"(\d+) \d", row):
            # Line 0 is of code that has no line, such as a loop of the library made for one type.
            if found[1] != "0" and not is_call:
                files.add(file)
            is_call = False
    return files


def of_workspace(files: set[str], root: pathlib.Path) -> list[str]:
    inside = (pathlib.Path(root, file) for file in files)
    inside = (file.relative_to(root) for file in inside if file.is_relative_to(root) and file.is_file())
    return sorted(str(file) for file in inside if file.parts[0] in CRATES)


def main() -> None:
    names = "--names" in sys.argv
    program, *rest = [argument for argument in sys.argv[1:] if argument != "--names"]
    root = pathlib.Path(rest[0] if rest else pathlib.Path(__file__).parents[2]).resolve()
    program = str(pathlib.Path(program).resolve())
    for way, verb in (("in", ["append", "--stdin"]), ("out", ["context", "s", "--json"])):
        for what, alone in (("the call alone", ALONE[way]), ("the whole process", [])):
            with tempfile.TemporaryDirectory() as folder:
                store = [program, "--db", f"{folder}/store"]
                known = CALLS[:2] if way == "in" else CALLS
                typed = "".join(line(*call) for call in known)
                subprocess.run([*store, "append", "--stdin"], input=typed, text=True, check=True)
                files = of_workspace(ran([*store, *verb], line(*CALLS[2]) if way == "in" else "", alone), root)
            by_crate = {crate: sum(file.startswith(f"{crate}/") for file in files) for crate in CRATES}
            told = ", ".join(f"{crate} {count}" for crate, count in by_crate.items() if count)
            print(f"{way}, {what}: {len(files)} files ({told})")
            if names:
                print("".join(f"  {file}\n" for file in files), end="")


main()
