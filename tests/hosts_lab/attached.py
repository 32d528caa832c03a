#!/usr/bin/env python3
"""Plays hosts to which acpdb is attached, and holds its store against the hosts' own recordings.

    attached.py ACPDB            # all scenes, with this program
    attached.py ACPDB claude     # those of one host

After each scene a plain import of the host's recording must add nothing to the store, and a store that was made by that
import alone must show the same. Then acpdb is missing, killed, locked out or damaged: the host ends its task each time.
"""
import glob
import json
import os
import random
import re
import shutil
import subprocess
import sys

import hosts
import lab

PROGRAM = os.path.abspath(sys.argv[1])
LONG = "".join("value_%d = compute(%d)\n" % (n, n) for n in range(60))
RECORDINGS = {"claude": "/.claude/projects", "codex": "/.codex/sessions", "gemini": "/.gemini/tmp"}
FAULTS = []


def fault(scene, text):
    FAULTS.append("%s/%s: %s" % (scene.host, scene.name, text))


def acpdb(scene, store, *words):
    command = [PROGRAM, "--db", os.path.join(scene.root, store), *words]
    done = subprocess.run(command, cwd=scene.project, env=scene.environment, capture_output=True, text=True, check=False, timeout=120)
    return done.stdout


def attach(scene, mode, program=None):
    """Attaches, and puts another program into the settings if one is named."""
    scene.environment.setdefault("CODEX_HOME", scene.home + "/.codex")
    acpdb(scene, "store", "attach", scene.host, "--mode", mode)
    if program:
        for path in glob.glob(scene.home + "/.*/settings.json") + glob.glob(scene.home + "/.*/hooks.json"):
            with open(path, encoding="utf-8") as file:
                text = file.read()
            with open(path, "w", encoding="utf-8") as file:
                file.write(text.replace(PROGRAM, program))


def play(scene, prompt, *words):
    if scene.host == "claude":
        return hosts.claude(scene, *words, prompt=prompt)
    if scene.host == "codex":
        return hosts.codex(scene, *words, prompt=prompt, exec_words=["--dangerously-bypass-hook-trust"])
    with open(scene.home + "/.gemini/settings.json", encoding="utf-8") as file:
        hooks = json.load(file)
    return hosts.gemini(scene, *words, prompt=prompt, more=hooks)


def shown(scene, store, name):
    """What a session shows, without what differs from store to store."""
    answer = json.loads(acpdb(scene, store, "context", name, "--json") or "{}")
    return [(row.get("role"), row.get("tool"), row.get("status"), (row.get("input") or {}).get("text"),
             (row.get("output") or {}).get("text")) for row in answer.get("items", [])]


def compare(scene):
    """The store of hooks against an import of what the host recorded."""
    recording = scene.home + RECORDINGS[scene.host]
    again = json.loads(acpdb(scene, "store", "import", recording, "--json"))
    new = sum(row["events_new"] for row in again["items"])
    acpdb(scene, "fresh", "import", recording)
    names = [row["id"] for row in json.loads(acpdb(scene, "fresh", "sessions", "--all", "--json") or "{}").get("items", [])]
    if not names:
        fault(scene, "the host recorded no session")
    # Gemini CLI's hooks end before its last lines are written.
    if new and scene.host != "gemini":
        fault(scene, "an import adds %d events to what hooks recorded" % new)
    for name in names:
        if shown(scene, "store", name) != shown(scene, "fresh", name):
            fault(scene, "session %s shows something else than an import of it" % name)
    if acpdb(scene, "store", "verify") == "":
        fault(scene, "the store cannot be verified")


def last_body(scene):
    with open(sorted(glob.glob(scene.wire + "/*.body"))[-1], encoding="utf-8") as file:
        return file.read()


def plain(scene):
    attach(scene, "record")
    ends(scene, play(scene, "Rename the greeting. <play:main>"))
    compare(scene)


def agent(scene):
    attach(scene, "record")
    ends(scene, play(scene, "Ask for help. <play:agent>"))
    compare(scene)


def pruned(scene):
    attach(scene, "prune")
    ends(scene, play(scene, "Read it twice. <play:again>"))
    body = last_body(scene)
    count = len(re.findall(r"\[60 lines, the same as lines \d+-\d+ of ", body))
    if count != 2:
        fault(scene, "%d of 2 repeated results were pointers on the wire" % count)
    if body.count("value_59 = compute(59)") != 1:
        fault(scene, "the text stands %d times on the wire" % body.count("value_59 = compute(59)"))
    compare(scene)
    if acpdb(scene, "store", "list").count("value_59 = compute(59)") < 1:
        fault(scene, "the original is not in the store")


def resumed(scene):
    attach(scene, "suggest")
    ends(scene, play(scene, "Rename the greeting. <play:main>"))
    acpdb(scene, "store", "memory", "add", "decision", "Jobs wait in Postgres", "--project", scene.project)
    ends(scene, play(scene, "Begin anew. <play:helper>"))
    if "Jobs wait in Postgres" not in last_body(scene):
        fault(scene, "the next session was not told of what was decided")
    compare(scene)


def missing(scene):
    attach(scene, "prune", program="/no/such/acpdb")
    ends(scene, play(scene, "Read it twice. <play:again>"))


def killed(scene):
    """Each hook is killed after a moment; what it had not recorded, an import adds, and nothing twice."""
    path = os.path.join(scene.root, "acpdb")
    with open(path, "w", encoding="utf-8") as file:
        file.write("#!/bin/bash\nexec timeout -s KILL 0.0$((RANDOM %% 6 + 1)) %s \"$@\"\n" % PROGRAM)
    os.chmod(path, 0o755)
    attach(scene, "record", program=path)
    ends(scene, play(scene, "Rename the greeting. <play:main>"))
    acpdb(scene, "store", "import", scene.home + RECORDINGS[scene.host])
    compare(scene)


def damaged(scene):
    attach(scene, "record")
    ends(scene, play(scene, "Look at it. <play:second>"))
    for path in glob.glob(scene.root + "/store/log/*"):
        with open(path, "r+b") as file:
            file.seek(max(0, os.path.getsize(path) // 2 - 32))
            file.write(random.Random(1).randbytes(64))
    ends(scene, play(scene, "Look at it. <play:second>"))


def unwritable(scene):
    with open(os.path.join(scene.root, "store"), "w", encoding="utf-8") as file:
        file.write("no folder")
    attach(scene, "prune")
    ends(scene, play(scene, "Read it twice. <play:again>"))
    status = subprocess.run([PROGRAM, "attach", "--status"], cwd=scene.project, env=scene.environment,
                            capture_output=True, text=True, check=False).stdout
    if "error" not in status:
        fault(scene, "nothing is said of hooks that fail: " + status)


def ends(scene, code):
    if code:
        fault(scene, "the host ended with %s" % code)


SCENES = {
    "claude": [plain, agent, pruned, resumed, missing, killed, damaged, unwritable],
    "codex": [plain, pruned, resumed, missing, killed],
    "gemini": [plain, missing],
}


def main():
    wanted = sys.argv[2:]
    for host, plays in SCENES.items():
        for scene_play in plays:
            name = scene_play.__name__
            if wanted and not any(word in (host, host + "/" + name) for word in wanted):
                continue
            scene = lab.Scene(host, "attached-" + name)
            scene.put("project/src/long.py", LONG)
            before = len(FAULTS)
            try:
                scene_play(scene)
            finally:
                scene.end()
            print("%s/%s: %s" % (host, name, "as it should be" if len(FAULTS) == before else FAULTS[before:]), flush=True)
            if len(FAULTS) == before:
                shutil.rmtree(scene.root, ignore_errors=True)
    sys.exit("\n".join(FAULTS) or 0)


if __name__ == "__main__":
    main()
