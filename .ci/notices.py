#!/usr/bin/env python3
"""Prints the notices of a package that is built: which crates are in it, under which licences, and the texts that these ask to be kept.

    notices.py MANIFEST [--features A,B] [--target TRIPLE]

Only what is linked: neither build scripts nor what tests need. A crate without a text of its own is named with its licence. Equal texts stand once.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

NAMES = ("licen", "copying", "notice", "copyright", "unlicense")


def metadata(manifest: str, features: str, target: str) -> dict:
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--manifest-path", manifest, "--filter-platform", target]
    if features:
        command += ["--features", features]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def host() -> str:
    told = subprocess.run(["rustc", "-vV"], check=True, stdout=subprocess.PIPE, text=True).stdout
    return next(line.split()[1] for line in told.splitlines() if line.startswith("host:"))


def linked(data: dict, root: str) -> set[str]:
    nodes = {node["id"]: node for node in data["resolve"]["nodes"]}
    procs = {it["id"] for it in data["packages"] if any("proc-macro" in target["kind"] for target in it["targets"])}
    found, rest = set(), [root]
    while rest:
        id = rest.pop()
        if id in found or id in procs:
            continue
        found.add(id)
        rest += [dep["pkg"] for dep in nodes[id]["deps"] if any(kind["kind"] is None for kind in dep["dep_kinds"])]
    return found


def texts(package: dict) -> list[str]:
    folder = Path(package["manifest_path"]).parent
    # The sources of another language stand in a folder of the crate that links them.
    folders = [folder, *(inner for inner in sorted(folder.iterdir()) if package["links"] and inner.is_dir())]
    all = [file for one in folders for file in sorted(one.iterdir())]
    files = [file for file in all if file.is_file() and file.name.lower().startswith(NAMES)]
    # Beside a licence, `COPYING` is another one that a user may choose instead.
    chosen = {file.parent for file in files if file.name.lower().startswith("licen")}
    files = [file for file in files if not (file.name.lower().startswith("copying") and file.parent in chosen)]
    named = package.get("license_file")
    if named and (folder / named).is_file() and folder / named not in files:
        files.append(folder / named)
    return [file.read_text(errors="replace").strip() for file in files if file.suffix not in (".rs", ".toml", ".py")]


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("manifest")
    asked.add_argument("--features", default="")
    asked.add_argument("--target", default="")
    it = asked.parse_args()
    data = metadata(it.manifest, it.features, it.target or host())
    path = str(Path(it.manifest).resolve())
    root = next(package for package in data["packages"] if package["manifest_path"] == path)
    ids = linked(data, root["id"])
    crates = [package for package in data["packages"] if package["id"] in ids and package["source"]]
    crates.sort(key=lambda package: (package["name"], package["version"]))
    unnamed = [package["name"] for package in crates if not (package["license"] or package["license_file"])]
    if unnamed:
        sys.exit(f"no licence is named by {', '.join(unnamed)}")
    print(f"{root['name']} {root['version']} holds these {len(crates)} crates, each under a licence of its own,")
    print("and the standard library of Rust: MIT OR Apache-2.0.\n")
    for package in crates:
        print(f"{package['name']} {package['version']}: {package['license'] or package['license_file']}")
    kept: dict[str, list[str]] = {}
    for package in crates:
        for text in texts(package):
            kept.setdefault(text, []).append(package["name"])
    for text, names in kept.items():
        print(f"\n\n{'-' * 80}\n{', '.join(dict.fromkeys(names))}\n{'-' * 80}\n\n{text}")


if __name__ == "__main__":
    main()
