#!/usr/bin/env python3
"""Plays one piece of work with each host, with acpdb and without, and prints what was sent and what it costs: a Markdown table.

    saved.py ACPDB [HOST..]      # the program; one with the proxy built in plays that, too

The work reads, searches, runs and edits one file of 240 lines, four times over, in two prompts. Tokens are a quarter of the bytes; what a
request shares with the one before it, from its beginning (tools, system prompt, messages), was read from the cache, the rest written to
it. Dollars are at the prices of the table in the program. The work is the same whatever the model is shown, so answers do not change.
"""
import json
import os
import shutil
import subprocess
import sys
import tomllib

import attached
import lab

LONG = "".join("value_%d = compute(%d)\n" % (n, n) for n in range(240))
PRICED = {"codex": "gpt-5-5", "copilot": "gpt-5-5", "gemini": "gemini-2-5-pro"}


def hooks(scene):
    attached.attach(scene, "prune")
    return [attached.play(scene, PROMPT), attached.play(scene, NEXT, *resumes(scene))]


def module(scene):
    return [attached.module(scene, prompt=PROMPT), attached.module(scene, "--continue", prompt=NEXT)]


def proxy(scene):
    process = attached.through_the_proxy(scene, "prune")
    try:
        return [attached.play(scene, PROMPT), attached.play(scene, NEXT, *resumes(scene))]
    finally:
        process.kill()


def without(scene):
    if scene.host == "gemini":
        scene.put("home/.gemini/settings.json", "{}")
    return [attached.play(scene, PROMPT), attached.play(scene, NEXT, *resumes(scene))]


def resumes(scene):
    return {"codex": ["resume", "--last"], "gemini": ["--resume", "latest"]}.get(scene.host, ["--continue"])


PROMPT = "Do the work. <play:work>"
NEXT = "And look once more. <play:second>"
# What is played for a host: its name, how acpdb comes in, and the policy; `acp` is the one of a new store.
WAYS = {
    "claude": [("without", without, None), ("hooks", hooks, "acp"), ("plug-in with its module", module, "acp"),
               ("proxy", proxy, "acp"), ("proxy", proxy, "economy")],
    "codex": [("without", without, None), ("hooks", hooks, "acp"), ("proxy", proxy, "acp"), ("proxy", proxy, "economy")],
    "opencode": [("without", without, None), ("plug-in", hooks, "acp"), ("plug-in", hooks, "economy")],
    "pi": [("without", without, None), ("extension", hooks, "acp"), ("extension", hooks, "economy")],
}


def prices(program):
    table = tomllib.loads(subprocess.run([program, "cost", "--show-prices"], capture_output=True, text=True, check=True).stdout)
    found = {}
    for model in table["model"]:
        provider = table["provider"][model["provider"]]
        for name in model["names"]:
            found[name] = {key: model.get(key, provider.get(key)) for key in ("input", "output", "read", "write")}
    return found


def pieces(body):
    """A request in the order in which a cache keeps it."""
    head = [json.dumps(body.get(name)) for name in ("tools", "instructions", "system", "systemInstruction")]
    messages = body.get("messages") or body.get("input") or body.get("contents") or []
    return head + [json.dumps(attached.uncached(message), ensure_ascii=False) for message in messages]


def counted(scene, price):
    sent = read = out = 0
    before = ""
    requests = attached.bodies(scene)
    for body in requests:
        text = "\n".join(pieces(body))
        shared = len(os.path.commonprefix([before, text]))
        before = text
        sent += len(text) // 4
        read += shared // 4
    for name in os.listdir(scene.wire):
        if name.endswith(".json"):
            with open(os.path.join(scene.wire, name), encoding="utf-8") as file:
                out += json.load(file)["usage"]["out"]
    dollars = ((read * price["read"] + (sent - read) * (price["write"] or 1.0)) * price["input"] + out * price["output"]) / 1e6
    return len(requests), sent, read, len(before) // 4, dollars


def main():
    wanted = sys.argv[2:]
    table = prices(attached.PROGRAM)
    print("| host | acpdb | policy | requests | tokens sent | of them cached | last request | dollars |\n|---|---|---|---|---|---|---|---|")
    for host, ways in WAYS.items():
        if wanted and host not in wanted:
            continue
        first = None
        for name, way, policy in ways:
            scene = lab.Scene(host, "saved-" + way.__name__)
            scene.put("project/src/long.py", LONG)
            scene.model = "claude-lab"
            if policy:
                attached.acpdb(scene, "store", "policy", "set", policy)
            try:
                codes = way(scene)
            except IndexError:
                print("%s/%s: this program has no proxy" % (host, way.__name__), file=sys.stderr)
                continue
            finally:
                scene.end()
            if any(codes):
                sys.exit("%s/%s: the host ended with %s" % (host, way.__name__, codes))
            count, sent, read, last, dollars = counted(scene, table[PRICED.get(host, "claude-opus-5-5")])
            first = first or (sent, last, dollars)
            less = lambda now, then: "" if now == then else " (%+d %%)" % round(100 * now / then - 100)
            print("| %s | %s | %s | %d | %s%s | %d %% | %s%s | %.3f%s |" % (
                host, name, policy or "", count, "{:,}".format(sent), less(sent, first[0]), round(100 * read / sent),
                "{:,}".format(last), less(last, first[1]), dollars, less(dollars, first[2])), flush=True)
            shutil.rmtree(scene.root, ignore_errors=True)


if __name__ == "__main__":
    main()
