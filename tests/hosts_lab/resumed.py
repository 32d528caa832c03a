#!/usr/bin/env python3
"""Sessions that acpdb writes back, opened by real hosts.

    resumed.py ACPDB     # the program to test

A host plays a scene; acpdb imports it and writes it back at a point, for the same host and for the other one; the host goes on
from what was written. What it sends then holds what was said up to that point, and nothing of later. Everything is on loopback.
"""
import glob
import json
import os
import subprocess
import sys

import hosts
import lab

LATER = "Done: greet says good day."
EARLY = "I read the file first."
IDS = ("00000000-0000-4000-8000-0000000000%02x" % number for number in range(1, 99))
failures = []


def check(says, holds, detail=""):
    print("  %s: %s%s" % ("ok" if holds else "FAILED", says, "" if holds else " " + detail))
    if not holds:
        failures.append(says)


def acpdb(program, scene, *words):
    environment = dict(scene.environment, ACPDB_PATH=scene.root + "/store")
    environment["CODEX_HOME"] = scene.home + "/.codex"
    done = subprocess.run([program, *words], cwd=scene.project, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit("acpdb %s: %s" % (" ".join(words), done.stderr))
    return done.stdout


def sent(scene):
    """The requests that the host sent, as texts, in order."""
    names = sorted(glob.glob(scene.wire + "/*"), key=lambda name: (os.path.getmtime(name), name))
    return [open(name, encoding="utf-8", errors="replace").read() for name in names if os.path.isfile(name)]


def resumed(program, scene, session, into, host, point):
    """Writes a session back; a host goes on from it. Gives what was sent then."""
    own = next(IDS)
    said = json.loads(acpdb(program, scene, "--at", point, "resume", session, "--in", into, "--id", own, "--folder", scene.project, "--json"))
    before = os.path.getsize(said["path"])
    known = len(sent(scene))
    prompt = "Look at it again. <play:second>"
    if host == "claude":
        code = hosts.claude(scene, "--resume", own, prompt=prompt)
    else:
        code = hosts.codex(scene, "resume", own, prompt=prompt)
    check("%s opens it and goes on" % into, code == 0, "ended with %s" % code)
    grown = os.path.getsize(said["path"]) > before
    forked = any(own in open(name, encoding="utf-8").read() for name in glob.glob(scene.home + "/.c*/**/*.jsonl", recursive=True) if name != said["path"])
    check("%s writes on to it" % into, grown or forked)
    requests = sent(scene)[known:]
    check("%s sends what was said before" % into, any(EARLY in request for request in requests), "in %d requests" % len(requests))
    is_early = point != "head"
    check("%s sends %s of later" % (into, "nothing" if is_early else "all"), any(LATER in request for request in requests) != is_early)


def played(host, program):
    name = {"claude": "claude-code"}.get(host, host)
    other, other_name = ("codex", "codex") if host == "claude" else ("claude", "claude-code")
    print(host)
    scene = lab.Scene(host, "resumed")
    try:
        play = hosts.claude if host == "claude" else hosts.codex
        play(scene, prompt="Rename the greeting. <play:main>")
        acpdb(program, scene, "import", "--host", name)
        session = json.loads(acpdb(program, scene, "sessions", "--json"))["items"][0]["id"]
        for point in ("t3", "head"):
            resumed(program, scene, session, name, host, point)
        written = acpdb(program, scene, "resume", session, "--in", other_name, "--id", next(IDS), "-o", scene.root + "/other.jsonl", "--folder", scene.project)
        print("  " + written.strip())
    finally:
        scene.end()
    return scene.root + "/store", session, other, other_name


def crossed(program, store, session, other, other_name):
    """The session of one host, opened by the other one."""
    print("%s, with a session of another host" % other)
    scene = lab.Scene(other, "crossed")
    try:
        # Its settings are written when it runs first.
        play = hosts.claude if other == "claude" else hosts.codex
        play(scene, prompt="Look at it. <play:second>")
        os.symlink(store, scene.root + "/store")
        resumed(program, scene, session, other_name, other, "head")
    finally:
        scene.end()


def main():
    program = os.path.abspath(sys.argv[1])
    lab.install()
    for host in ("claude", "codex"):
        crossed(program, *played(host, program))
    sys.exit("%d failed: %s" % (len(failures), "; ".join(failures)) if failures else 0)


if __name__ == "__main__":
    main()
