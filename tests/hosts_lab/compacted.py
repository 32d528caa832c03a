#!/usr/bin/env python3
"""Plays hosts that compact, with acpdb attached and without: does the model get back what the summary left out?

    compacted.py ACPDB [HOST..]

A command shows a number, the host compacts, and the model needs the number. With acpdb it finds the command's id in the index, and one
call of `recall` gives the number back. Without, nothing that it is sent has the number or the command.
"""
import json
import os
import shutil
import sys

import attached
import hosts
import lab

PROGRAM = os.path.abspath(sys.argv[1])
NUMBER = "port 48213"
FAULTS = attached.FAULTS
FACT, NEED = "Look where it listens. <play:fact>", "Which port is it? <play:need>"


def claude(scene, with_acpdb):
    words = ()
    if with_acpdb:
        attached.attach(scene, "suggest")
        server = {"mcpServers": {"acpdb": {"command": PROGRAM, "args": ["--db", scene.root + "/store", "mcp"]}}}
        scene.put("mcp.json", json.dumps(server))
        words = ("--mcp-config=" + scene.root + "/mcp.json",)
    hosts.claude(scene, *words, prompt=FACT, flags=())
    hosts.claude(scene, *words, "--continue", prompt="/compact", flags=())
    hosts.claude(scene, *words, "--continue", prompt=NEED, flags=())


def codex(scene, with_acpdb):
    tables, words = "", []
    if with_acpdb:
        attached.attach(scene, "suggest")
        tables = '[mcp_servers.acpdb]\ncommand = "%s"\nargs = ["--db", "%s/store", "mcp"]\n' % (PROGRAM, scene.root)
        words = ["--dangerously-bypass-hook-trust"]
    limit = "model_auto_compact_token_limit = 5600"
    hosts.codex(scene, prompt=FACT, tables=tables, exec_words=words)
    hosts.codex(scene, "resume", "--last", prompt="Look at it again. <play:second>", head=limit, tables=tables, exec_words=words)
    hosts.codex(scene, "resume", "--last", prompt=NEED, tables=tables, exec_words=words)


def opencode(scene, with_acpdb):
    if with_acpdb:
        attached.attach(scene, "suggest")
    hosts.opencode(scene, prompt=FACT)
    hosts.opencode(scene, "--continue", prompt="Look at it again. <play:second>", window=20000)
    hosts.opencode(scene, "--continue", prompt=NEED)


def pi(scene, with_acpdb):
    if with_acpdb:
        attached.attach(scene, "suggest")
    settings = {"compaction": {"enabled": True, "reserveTokens": 1000, "keepRecentTokens": 60}}
    hosts.pi(scene, prompt=FACT, settings=settings)
    hosts.pi(scene, "--continue", lines=[(2, json.dumps({"type": "compact"})),
                                         (4, json.dumps({"type": "prompt", "message": NEED}))], settings=settings)


def texts(body):
    from provider import strings
    return "\n".join(strings(body))


def main():
    wanted = sys.argv[2:]
    for name, run in (("claude", claude), ("codex", codex), ("opencode", opencode), ("pi", pi)):
        if wanted and name not in wanted:
            continue
        for with_acpdb in (True, False):
            scene = lab.Scene(name, "compacted-" + ("with" if with_acpdb else "without"))
            scene.model = "claude-lab"
            lines = ["this is line %d of the settings of the laboratory" % n for n in range(600)]
            scene.put("project/src/ports.txt", "\n".join(lines[:20] + ["it listens on " + NUMBER] + lines[20:]) + "\n")
            try:
                run(scene, with_acpdb)
            finally:
                scene.end()
            needs = []
            for path in sorted(os.listdir(scene.wire)):
                if path.endswith(".json"):
                    with open(os.path.join(scene.wire, path), encoding="utf-8") as file:
                        meta = json.load(file)
                    if (meta.get("at") or [None])[0] == "need":
                        with open(os.path.join(scene.wire, path[:-5] + ".body"), encoding="utf-8") as file:
                            needs.append(texts(json.load(file)))
            before = len(FAULTS)
            if len(needs) != 2:
                attached.fault(scene, "%d requests instead of 2: the host did not compact, or the play did not end" % len(needs))
            elif NUMBER in needs[0]:
                attached.fault(scene, "the compaction took nothing")
            elif (NUMBER in needs[1]) != with_acpdb:
                attached.fault(scene, "the number is %son the wire: %s" % ("" if NUMBER in needs[1] else "not ", needs[1][-1500:]))
            print("%s, %s acpdb: %s" % (name, "with" if with_acpdb else "without", "as it should be" if len(FAULTS) == before else FAULTS[before:]), flush=True)
            if len(FAULTS) == before and not os.environ.get("HOSTS_KEEP"):
                shutil.rmtree(scene.root, ignore_errors=True)
    sys.exit("\n".join(FAULTS) or 0)


if __name__ == "__main__":
    main()
