#!/usr/bin/env python3
"""The figures of size that docs/DESIGN.md names, counted from the sources.

    python3 tests/scripts/measure.py                      lines, types, names, crates
    python3 tests/scripts/measure.py --functions PROGRAM  own functions that one appended line runs through (valgrind)
    python3 tests/scripts/measure.py --bytes PROGRAM      bytes of the log for each tool call, beyond its texts

A line of production is any line of a `.rs` file below a crate's `src`, tests apart: files named `tests.rs` or `*_tests.rs`, folders
named `tests`, and items under `#[cfg(test)]`. What is compiled for tests alone behind the feature `testing` (the simulated storage, generators,
samples) has a row of its own. Lines of code are these without blank lines and comments. Types are structs, enums, traits and unions of production code. A type name counts as
repeated if it stands at more than one place of the workspace. Crates are those that `cargo tree` names for a normal build.
"""

import argparse
import collections
import json
import pathlib
import re
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
CRATES = ("engine", "serve", "query", "hosts", "live", "proof", "remote", "acpdb", "cli", "bindings/shared", "bindings/node", "bindings/python")
# The part of the engine that stores: what a reader of the log has to hold.
STORAGE = ("codec", "log", "index", "store")
TYPE = re.compile(r"^\s*(?:pub(?:\([^)]*\))?\s+)?(?:unsafe\s+)?(?:struct|enum|trait|union)\s+([A-Za-z_]\w*)")


def is_test(path: pathlib.PurePath) -> bool:
    return "tests" in path.parts[:-1] or path.stem == "tests" or path.stem.endswith("_tests")


FOR_TESTS = re.compile(r'\s*#\[cfg\((?:test|any\(test, feature = "testing"\))\)\]')


def production(text: str) -> list[str]:
    """The lines of a file without its items that only tests compile."""
    kept, lines = [], iter(text.splitlines())
    for line in lines:
        if FOR_TESTS.match(line):
            skip_item(lines)
        else:
            kept.append(line)
    return kept


def modules_for_tests(folder: pathlib.Path) -> set[pathlib.Path]:
    """The files and folders of modules that are declared for tests alone, below a crate's `src`."""
    found = set()
    for path in folder.rglob("*.rs"):
        inside = path.parent if path.stem in ("lib", "main", "mod") else path.with_suffix("")
        for match in re.finditer(FOR_TESTS.pattern + r"\n\s*(?:pub(?:\([^)]*\))? )?mod (\w+);", path.read_text()):
            found |= {inside / match[1], inside / f"{match[1]}.rs"}
    return found


def skip_item(lines) -> None:
    """Passes over an item: up to the brace that closes it, or to its semicolon."""
    depth, has_begun = 0, False
    for line in lines:
        bare = re.sub(r'//.*|"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)\'', "", line)
        depth += bare.count("{") - bare.count("}")
        has_begun |= "{" in bare
        if depth <= 0 and (has_begun or bare.rstrip().endswith((";", ","))):
            return


def sources(folder: pathlib.Path):
    apart = modules_for_tests(folder)
    for path in sorted(folder.rglob("*.rs")):
        below = path.relative_to(folder)
        if not is_test(below) and not apart.intersection({path, *path.parents}):
            yield below, production(path.read_text())


def lines_for_testing(folder: pathlib.Path) -> int:
    """The lines of modules behind the feature `testing`, the tests of these apart."""
    apart = modules_for_tests(folder)
    files = (path for path in folder.rglob("*.rs") if apart.intersection({path, *path.parents}))
    return sum(len(path.read_text().splitlines()) for path in files if not is_test(path.relative_to(folder)))


def tree(package: str, *features: str) -> int:
    """Crates that a normal build of a package compiles, itself and those of the workspace among them."""
    command = ["cargo", "tree", "-p", package, "-e", "normal,build", "--prefix", "none", "-f", "{p}", *features]
    out = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return len({" ".join(line.split()[:2]) for line in out.splitlines() if line.strip()})


def sizes() -> None:
    names = collections.Counter()
    rooms = collections.Counter()
    types_of = collections.Counter()
    print(f"{'crate':<18}{'lines':>8}{'code':>8}{'types':>8}")
    code_stored = 0
    for crate in CRATES:
        lines, code = 0, 0
        for below, kept in sources(ROOT / crate / "src"):
            lines += len(kept)
            of_code = sum(1 for line in kept if line.strip() and not line.strip().startswith("//"))
            code += of_code
            found = [match[1] for line in kept if (match := TYPE.match(line))]
            names.update(found)
            types_of[crate] += len(found)
            if crate == "engine":
                room = below.parts[0].removesuffix(".rs") if len(below.parts) > 1 else "root"
                rooms[room] += len(kept)
                code_stored += of_code if room in STORAGE else 0
        print(f"{crate:<18}{lines:>8}{code:>8}{types_of[crate]:>8}")
    print("\nrooms of the engine")
    for room, lines in rooms.most_common():
        print(f"{room:<18}{lines:>8}")
    print(f"{'for tests, apart':<18}{lines_for_testing(ROOT / 'engine/src'):>8}")
    print(f"{'of it ' + ', '.join(STORAGE):<30}{sum(rooms[room] for room in STORAGE)}, of code {code_stored}")
    repeated = {name: count for name, count in names.items() if count > 1}
    print(f"\ntype names at more than one place: {len(repeated)}, {sum(repeated.values())} types")
    print(f"crates that the library compiles: {tree('acpdb')}")
    print(f"crates that the program compiles: {tree('acpdb-cli')}")


def functions(program: str) -> None:
    """Own functions, by callgrind, that run when one line is appended and do not when none is."""
    line = json.dumps({"session": "s", "turn": True, "tool": {"call": "c2", "tool": "read", "params": {"filePath": "/a"}, "output": "1\n"}})
    with tempfile.TemporaryDirectory() as folder:
        store = pathlib.Path(folder) / "store"
        append = [program, "--db", str(store), "append", "--stdin"]
        first = line.replace("c2", "c1") + "\n"
        subprocess.run(append, input=first, text=True, check=True, capture_output=True)
        idle, busy = (ran(append, typed, folder) for typed in ("", line + "\n"))
    own = {name for name in busy - idle if "acpdb" in name}
    modules = {"::".join(name.split("::")[:-1]) for name in map(plain, own)}
    print(f"own functions that one appended line runs through: {len({plain(name) for name in own})} in {len(modules)} modules")


def bytes_a_call(program: str, count: int = 2000) -> None:
    """The log's bytes for each of so many tool calls, without headers of segments, less its parameters, path and output."""
    for name, together in (("in commits of 100 calls", 100), ("one by one", 1)):
        texts, lines = 0, []
        for first in range(0, count, together):
            events = []
            for number in range(first, first + together):
                path, output = f"/src/file{number % 97}.rs", f"line {number}\n" * (1 + number % 40)
                params = {"filePath": path}
                texts += len(json.dumps(params, separators=(",", ":"))) + len(output)
                events.append({"turn": True, "tool": {"call": f"call_{number:024}", "tool": "read", "params": params, "output": output}})
            lines.append(json.dumps({"session": "s", "events": events} if together > 1 else {"session": "s", **events[0]}))
        with tempfile.TemporaryDirectory() as folder:
            store = pathlib.Path(folder) / "store"
            append = [program, "--db", str(store), "append", "--stdin"]
            subprocess.run(append, input="\n".join(lines) + "\n", text=True, check=True, capture_output=True)
            log = sum(path.stat().st_size - 4096 for path in store.glob("log/*.seg"))
        print(f"bytes a call beyond its texts, {name}: {(log - texts) / count:.0f}")


def plain(name: str) -> str:
    """A function's path without types, disambiguators and closures."""
    name = re.sub(r"'\d+$|::h[0-9a-f]{16}$|\{\{closure\}\}", "", name)
    inner = re.match(r"<(?:&(?:mut )?)?([\w:]+)(?:<.*>)?(?: as .*)?>::(.*)", name)
    name = f"{inner[1]}::{inner[2]}" if inner else name
    return re.sub(r"<.*?>|::$", "", name).rstrip(":")


def ran(command: list[str], typed: str, folder: str) -> set[str]:
    out = pathlib.Path(folder) / "out"
    tool = ["valgrind", "--tool=callgrind", "--compress-strings=no", "--compress-pos=no", f"--callgrind-out-file={out}"]
    subprocess.run([*tool, *command], input=typed, text=True, check=True, capture_output=True)
    return set(re.findall(r"^fn=(.*)$", out.read_text(), re.M))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--functions", metavar="PROGRAM", help="a release build of the program")
    parser.add_argument("--bytes", metavar="PROGRAM", help="a build of the program")
    args = parser.parse_args()
    if args.functions:
        functions(args.functions)
    elif args.bytes:
        bytes_a_call(args.bytes)
    else:
        sizes()


if __name__ == "__main__":
    main()
