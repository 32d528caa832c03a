#!/usr/bin/env python3
"""Plays hosts to which acpdb is attached, and holds its store against the hosts' own recordings.

    attached.py ACPDB            # all scenes, with this program
    attached.py ACPDB claude     # those of one host

After each scene a plain import of the host's recording must add nothing to the store, and a store that was made by that
import alone must show the same. Then acpdb is missing, killed, locked out or damaged: the host ends its task each time.
"""
import contextlib
import fcntl
import glob
import json
import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys

import hosts
import lab

PROGRAM = os.path.abspath(sys.argv[1])
LONG = "".join("value_%d = compute(%d)\n" % (n, n) for n in range(60))
RECORDINGS = {"claude": "/.claude/projects", "codex": "/.codex/sessions", "gemini": "/.gemini/tmp", "copilot": "/.copilot/session-state",
              "opencode": "/.local/share/opencode/opencode.db", "pi": "/.pi/agent/sessions"}
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
        places = ("/.*/settings.json", "/.*/hooks.json", "/.config/opencode/plugin/acpdb.js", "/.pi/agent/extensions/acpdb.ts")
        for path in [path for place in places for path in glob.glob(scene.home + place)]:
            with open(path, encoding="utf-8") as file:
                text = file.read()
            with open(path, "w", encoding="utf-8") as file:
                file.write(text.replace(PROGRAM, program))


def play(scene, prompt, *words):
    if scene.host == "claude":
        return hosts.claude(scene, *words, prompt=prompt)
    if scene.host == "codex":
        return hosts.codex(scene, *words, prompt=prompt, exec_words=["--dangerously-bypass-hook-trust"])
    if scene.host == "opencode":
        # Plug-ins are looked for when a version of their library is there; none is fetched.
        return hosts.opencode(scene, *words, prompt=prompt, model=scene.model)
    if scene.host == "pi":
        return hosts.pi(scene, *words, prompt=prompt)
    if scene.host == "copilot":
        return hosts.copilot(scene, *words, prompt=prompt)
    with open(scene.home + "/.gemini/settings.json", encoding="utf-8") as file:
        hooks = json.load(file)
    return hosts.gemini(scene, *words, prompt=prompt, more=hooks)


def shown(scene, store, name):
    """What a session shows, without what differs from store to store."""
    answer = json.loads(acpdb(scene, store, "context", name, "--json") or "{}")
    return [(row.get("role"), row.get("tool"), row.get("status"), (row.get("input") or {}).get("text"),
             (row.get("output") or {}).get("text")) for row in answer.get("items", []) if row.get("kind") != "injected"]


def told_later(database):
    """Records of prompts that opencode has written again."""
    asked = "select count(*) from message where json_extract(data, '$.role') = 'user' and json_extract(data, '$.summary') is not null"
    with contextlib.closing(sqlite3.connect("file:%s?mode=ro" % database, uri=True)) as rows:
        return rows.execute(asked).fetchone()[0]


def compare(scene):
    """The store of hooks against an import of what the host recorded."""
    recording = scene.home + RECORDINGS[scene.host]
    again = json.loads(acpdb(scene, "store", "import", recording, "--json"))
    new = sum(row["events_new"] for row in again["items"])
    acpdb(scene, "fresh", "import", recording)
    names = [row["id"] for row in json.loads(acpdb(scene, "fresh", "sessions", "--all", "--json") or "{}").get("items", [])]
    if not names:
        fault(scene, "the host recorded no session")
    # The document of a session is put together by its import alone; and once a turn has ended, opencode writes its changes of files
    # into the record of its prompt.
    new -= len(names) + told_later(recording) if scene.host == "opencode" else 0
    # The hooks of Gemini CLI and Copilot CLI end before their last lines are written.
    if new > 0 and scene.host not in ("gemini", "copilot"):
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
    # Copilot CLI writes its recording a moment late, and puts a line of its own under the output of a command, so that it is no repeated text.
    is_late = scene.host == "copilot"
    ends(scene, play(scene, "Read it twice. <play:%s>" % ("again_later" if is_late else "again")))
    body = last_body(scene)
    count = len(re.findall(r"\[60 lines, the same as lines \d+-\d+ of ", body))
    wanted = 1 if is_late else 2
    if count != wanted:
        fault(scene, "%d of %d repeated results were pointers on the wire" % (count, wanted))
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


def bodies(scene):
    """The requests that carry tools, oldest first."""
    found = []
    for path in sorted(glob.glob(scene.wire + "/*.body")):
        with open(path, encoding="utf-8") as file:
            body = json.load(file)
        if body.get("tools"):
            found.append(body)
    return found


def accepted(scene):
    """No request is refused by lint."""
    for path in sorted(glob.glob(scene.wire + "/*.body")):
        done = subprocess.run([PROGRAM, "context", "lint", "--format", "anthropic", path], capture_output=True, text=True, check=False)
        if done.returncode:
            fault(scene, "lint refuses %s: %s" % (os.path.basename(path), done.stdout[:300] + done.stderr[:300]))


def calls_on_the_wire(body):
    """(id, tool, its result as a text) of each call of a request."""
    uses, results = {}, []
    for message in body["messages"]:
        for block in message["content"] if isinstance(message["content"], list) else []:
            if block.get("type") == "tool_use":
                uses[block["id"]] = block["name"]
            elif block.get("type") == "tool_result":
                content = block["content"]
                text = content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
                results.append((block["tool_use_id"], uses.get(block["tool_use_id"]), text))
    return results


def superseded(scene):
    """What is superseded is really absent on the wire, and stays in the host's own recording and in the store."""
    eager = [PROGRAM, "--db", scene.root + "/store", "policy", "set", "acp", "serve.mode=eager"]
    subprocess.run(eager, cwd=scene.project, env=scene.environment, capture_output=True, check=True)
    attach(scene, "prune")
    ends(scene, play(scene, "Rename the greeting. <play:main>"))
    reads = [text for _, tool, text in calls_on_the_wire(bodies(scene)[-1]) if tool and tool.lower() == "read"]
    whole = [text for text in reads if "def greet" in text]
    if len(whole) != 1 or "good day" not in whole[0]:
        fault(scene, "%d of 3 reads of the file are whole on the wire; the newest alone should be: %s" % (len(whole), reads))
    if not any("superseded" in text for text in reads):
        fault(scene, "no read stands as superseded on the wire: %s" % reads)
    ends(scene, play(scene, "Look at it. <play:second>", "--continue"))
    reads = [text for _, tool, text in calls_on_the_wire(bodies(scene)[-1]) if tool and tool.lower() == "read"]
    if sum("def greet" in text for text in reads) != 1:
        fault(scene, "after a resume the reads on the wire are %s" % reads)
    accepted(scene)
    again(scene)
    if scene.host in ("opencode", "pi"):
        compare(scene)


def again(scene):
    """What was served last can be made again from the log, byte for byte."""
    for name in sessions(scene):
        done = subprocess.run([PROGRAM, "--db", scene.root + "/store", "context", name, "--served"], cwd=scene.project,
                              env=scene.environment, capture_output=True, text=True, check=False)
        if done.returncode:
            fault(scene, "what was served of %s is not made again: %s" % (name, done.stderr))


def sessions(scene):
    answer = json.loads(acpdb(scene, "store", "sessions", "--all", "--json") or "{}")
    return [row["id"] for row in answer.get("items", [])]


def stable(scene):
    """Between two rewrites each request begins with the one before it: nothing is rewritten where that does not pay."""
    attach(scene, "prune")
    ends(scene, play(scene, "Rename the greeting. <play:main>"))
    before = None
    breaks = 0
    for body in bodies(scene):
        messages = [json.dumps(uncached(message)) for message in body["messages"]]
        if before is not None and messages[:len(before)] != before:
            breaks += 1
        before = messages
    if breaks > 2:
        fault(scene, "the beginning changed in %d of %d requests" % (breaks, len(bodies(scene))))
    again(scene)


def uncached(value):
    if isinstance(value, dict):
        return {name: uncached(item) for name, item in value.items() if name != "cache_control"}
    return [uncached(item) for item in value] if isinstance(value, list) else value


def tools(scene):
    """The context tool discards and restores by the hash that stands under a result."""
    attach(scene, "prune")
    ends(scene, play(scene, "Tidy up. <play:tidy>"))
    all_bodies = bodies(scene)
    names = [tool["name"] for tool in all_bodies[0]["tools"]]
    for name in ("context", "acpdb_recall", "acpdb_memory_remember"):
        if name not in names:
            fault(scene, "the tool %s is not offered: %s" % (name, names))
    seen = [[text for _, tool, text in calls_on_the_wire(body) if tool == "read"] for body in all_bodies]
    hidden = [texts for texts in seen if texts and "def greet" not in texts[0]]
    if not hidden:
        fault(scene, "what was discarded is still on the wire: %s" % seen[-1])
    if "def greet" not in seen[-1][0]:
        fault(scene, "what was restored is not back: %s" % seen[-1])
    text = json.dumps(all_bodies[-1], ensure_ascii=False)
    for said in ("pruned: read", "Restored 1 tool(s)", "Jobs wait in Postgres"):
        if said not in text:
            fault(scene, "%r is not on the wire" % said)
    accepted(scene)


# What a user of opencode-agent-context-pruning has; the last setting is one that nothing stands for.
CONFIGURATION = """{
  // as it stands in a home
  "protectedTools": ["skill"],
  "strategies": {"deduplication": {"enabled": true}, "purgeErrors": {"enabled": true, "turns": 3}},
  "tools": {"todoReminder": {"enabled": true, "initialTurns": 2, "repeatTurns": 2, "stuckTaskTurns": 3}},
  "pruneNotification": "detailed",
}
"""


def configured(scene):
    """The configuration of the plug-in that was there before is imported; its reminder comes up on the wire, and a distilled result is its summary."""
    scene.put("dcp.jsonc", CONFIGURATION)
    answer = json.loads(acpdb(scene, "store", "policy", "import", scene.root + "/dcp.jsonc", "--json") or "{}")
    if "pruneNotification" not in json.dumps(answer):
        fault(scene, "the setting that has no counterpart is not named: %s" % answer)
    attach(scene, "prune")
    ends(scene, play(scene, "Distil it. <play:distil>"))
    body = bodies(scene)[-1]
    text = json.dumps(body, ensure_ascii=False)
    for said in ("Todo reminder", "Task Breakdown Suggestion", "todowrite", "a.py greets by name; main greets the lab"):
        if said not in text:
            fault(scene, "%r is not on the wire" % said)
    if any("def greet" in result for _, tool, result in calls_on_the_wire(body) if tool == "read"):
        fault(scene, "what was distilled is whole on the wire")
    accepted(scene)
    again(scene)


def commanded(scene):
    """`/acpdb stats` and `/acpdb log` reach the conversation with the figures of the store."""
    attach(scene, "prune")
    ends(scene, play(scene, "Rename the greeting. <play:main>"))
    for op, said in (("stats", "Strategy Effectiveness:"), ("log", "superseded")):
        ends(scene, hosts.opencode(scene, "--continue", "--command", "acpdb", prompt=op, model=scene.model))
        if said not in last_body(scene):
            fault(scene, "/acpdb %s says nothing of %r" % (op, said))


def compacted(scene):
    """opencode compacts: the request for the summary carries open todos and distilled facts."""
    attach(scene, "prune")
    # What opencode sends before any message takes half of this window; in one that it fills, opencode compacts for ever.
    ends(scene, hosts.opencode(scene, prompt="Distil it. <play:distil>", window=200000, model=scene.model))
    ends(scene, hosts.opencode(scene, "--continue", prompt="Count. <play:bulk>", window=20000, model=scene.model))
    ends(scene, hosts.opencode(scene, "--continue", prompt="Look at it again. <play:second>", window=200000, model=scene.model))
    asked = []
    for path in sorted(glob.glob(scene.wire + "/*.body")):
        with open(path, encoding="utf-8") as file:
            text = json.dumps(json.load(file), ensure_ascii=False)
        asked += [text] if "Open todos, to be kept as they are" in text else []
    if not asked or "[in_progress] Rename greet" not in asked[0] or "a.py greets by name" not in asked[0]:
        fault(scene, "%d requests for a summary were told what to keep: %s" % (len(asked), [text[-1500:] for text in asked]))
    compare(scene)


def locked(scene):
    """Another process holds each lock of the store: the host ends its task, and records it once the locks are free."""
    attach(scene, "prune")
    ends(scene, play(scene, "Look at it. <play:second>"))
    held = [open(path, "r+b") for path in glob.glob(scene.root + "/store/**", recursive=True) if os.path.isfile(path)]
    for file in held:
        fcntl.flock(file, fcntl.LOCK_EX)
    ends(scene, play(scene, "Read it twice. <play:again>"))
    for file in held:
        file.close()
    ends(scene, play(scene, "Look at it. <play:second>", "--continue"))
    acpdb(scene, "store", "import", scene.home + RECORDINGS[scene.host])
    compare(scene)


def packaged(scene):
    """The plug-in of the repository, loaded from its folder: it records, and its commands answer without a model."""
    for verb in (["validate", "--strict"], ["test"]):
        done = subprocess.run(["claude", "plugin", *verb, os.path.join(lab.HERE, "../../plugins/claude-code")], cwd=scene.project,
                              env=scene.environment, capture_output=True, text=True, check=False, timeout=120)
        if done.returncode:
            fault(scene, "claude plugin %s: %s" % (verb[0], done.stdout[-1500:] + done.stderr[-500:]))
    scene.environment.update(ACPDB_PROGRAM=PROGRAM, ACPDB_PATH=scene.root + "/store", ACPDB_MODE="prune")
    words = ["--plugin-dir", os.path.join(lab.HERE, "../../plugins/claude-code")]
    ends(scene, hosts.claude(scene, *words, prompt="Rename the greeting. <play:main>", flags=()))
    compare(scene)
    count = len(bodies(scene))
    for ask, part in (("why src/a.py", "a.py"), ("stats", "superseded"), ("restore", "restore what?"), ("dance", "acpdb knows")):
        ends(scene, hosts.claude(scene, "--continue", *words, prompt="/acpdb " + ask, flags=()))
        with open("%s/%d.out" % (scene.root, scene.said), encoding="utf-8") as file:
            said = file.read()
        if part not in said:
            fault(scene, "/acpdb %s answers %s" % (ask, said[:400]))
    if len(bodies(scene)) != count:
        fault(scene, "a command asked the model")
    scene.environment["ACPDB_PROGRAM"] = "/no/such/acpdb"
    ends(scene, hosts.claude(scene, *words, prompt="Look at it. <play:second>", flags=()))


PLUGIN = ["--plugin-dir", os.path.join(lab.HERE, "../../plugins/claude-code")]


def module(scene, *words, prompt=None, lines=None, mode="prune", program=PROGRAM):
    """Claude Code with the plug-in of the repository, whose module it runs in its own process."""
    scene.environment.update(ACPDB_PROGRAM=program, ACPDB_PATH=scene.root + "/store", ACPDB_MODE=mode)
    told = [(wait, json.dumps({"type": "user", "message": {"role": "user", "content": text}})) for wait, text in lines or []]
    return hosts.claude(scene, *PLUGIN, *words, prompt=prompt, lines=told, flags=())


def events(scene):
    """How often acpdb was told of each event."""
    with open(scene.home + "/.local/state/acpdb/hooks.jsonl", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    count = {}
    for row in rows:
        count[row["event"]] = count.get(row["event"], 0) + 1
        if row.get("error"):
            fault(scene, "acpdb failed: %s" % row)
    return count


def transcript(scene):
    with open(max(glob.glob(scene.home + "/.claude/projects/*/*.jsonl"), key=os.path.getmtime), encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def module_recorded(scene):
    """The module tells each result, the hooks for calls nothing; what is recorded is the host's recording, subagents too."""
    ends(scene, module(scene, prompt="Rename the greeting. <play:main>", mode="record"))
    ends(scene, module(scene, prompt="Ask for help. <play:agent>", mode="record"))
    count = events(scene)
    results = sum(len(calls_on_the_wire(body)) for body in last_of_each(scene))
    if count.get("session.append") != results or "PostToolUse" in count or "PostToolBatch" in count:
        fault(scene, "%d results, and acpdb was told of %s" % (results, count))
    compare(scene)


def last_of_each(scene):
    """The last request of each conversation: those that no later one begins with."""
    found = {}
    for body in bodies(scene):
        first = json.dumps(uncached(next(message for message in body["messages"] if message["role"] == "user")))
        found[first] = body
    return found.values()


def module_pruned(scene):
    """A repeated result is a pointer before it is first sent, whatever the tool; the recording keeps the original beside it."""
    ends(scene, module(scene, prompt="Read it twice. <play:again>"))
    ends(scene, module(scene, "--continue", prompt="Look at it. <play:second>"))
    texts = [text for _, _, text in calls_on_the_wire(bodies(scene)[-1])]
    pointers = [text for text in texts if re.match(r"\[6[01] lines, the same as lines \d+-\d+ of [^\n]*\]$", text)]
    if len(pointers) != 2 or sum("value_59 = compute(59)" in text for text in texts) != 1:
        fault(scene, "the results on the wire are %s" % texts)
    kept = [json.dumps(row["toolUseResult"]) for row in transcript(scene) if "toolUseResult" in row]
    if sum("value_59 = compute(59)" in text for text in kept) != 3:
        fault(scene, "the recording keeps the original of %d of 3 results" % sum("value_59" in text for text in kept))
    if any(name in events(scene) for name in ("PostToolUse", "PostToolBatch")):
        fault(scene, "hooks did what the module does: %s" % events(scene))
    compare(scene)
    if acpdb(scene, "store", "list").count("value_59 = compute(59)") < 1:
        fault(scene, "the original is not in the store")


def points(text, sent):
    """Whether a text is a pointer to a command's result that stands on the wire whole."""
    found = re.match(r"\[\d+ lines, the same as lines \d+-\d+ of Bash seq (\d+) \d+ above\]", text)
    return found and any(other.startswith(found.group(1) + "\n") for other in sent.values())


def served_is_sent(scene, name, where):
    """What was recorded as served is what stands on the wire, and nothing else there is a placeholder."""
    served = [json.loads(line) for line in acpdb(scene, "store", "context", name, "--served").splitlines()]
    served = {line["call"]: line["output"] for line in served if "output" in line}
    sent = {call: text for call, _, text in calls_on_the_wire(bodies(scene)[-1])}
    for call, text in sent.items():
        if text.rstrip() != served.get(call, text).rstrip() or (text.startswith("[") and call not in served and not points(text, sent)):
            fault(scene, "%s: %s was sent as %r, and acpdb served %r" % (where, call, text[:200], served.get(call, "it whole")[:200]))
    if not set(served) <= set(sent):
        fault(scene, "%s: calls that were served are not on the wire: %s" % (where, set(served) - set(sent)))
    return sent


def module_folded(scene):
    """A compaction is answered by acpdb without a model, and stands: in one process, and in the next."""
    lines = [(0, "Count. <play:bulk>"), (15, "/compact"), (5, "Look at it. <play:second>")]
    ends(scene, module(scene, lines=lines))
    folded(scene, "in one process", 1)
    ends(scene, module(scene, "--continue", prompt="And the other. <play:helper>"))
    folded(scene, "in the next process", 1)
    ends(scene, module(scene, "--continue", prompt="Count again. <play:bulk>"))
    ends(scene, module(scene, "--continue", prompt="/compact"))
    ends(scene, module(scene, "--continue", prompt="Look again. <play:second>"))
    folded(scene, "after another compaction", 2)
    accepted(scene)
    compare(scene)


def module_full(scene):
    """The context is full between two steps of a turn: acpdb answers, the turn goes on, and the next process has the same."""
    ends(scene, module(scene, "--autocompact", "100000", prompt="Count. <play:full>"))
    folded(scene, "within a turn", 1)
    if "It went on." not in json.dumps(transcript(scene)):
        fault(scene, "the turn did not go on")
    ends(scene, module(scene, "--continue", prompt="And the other. <play:second>"))
    folded(scene, "in the next process", 1)
    accepted(scene)
    compare(scene)


def folded(scene, where, count):
    boundaries = [row for row in transcript(scene) if row.get("subtype") == "compact_boundary"]
    if len(boundaries) != count or any(row.get("isCompactSummary") for row in transcript(scene)):
        fault(scene, "%s: %d of %d compactions, and %d summaries by the model" %
              (where, len(boundaries), count, sum(bool(row.get("isCompactSummary")) for row in transcript(scene))))
    name = next(name for name in sessions(scene) if "/" not in name)
    sent = served_is_sent(scene, name, where)
    hidden = sum(text.startswith("[") for text in sent.values())
    if not 3 * count <= hidden < len(sent):
        fault(scene, "%s: %d of %d results are placeholders: %s" % (where, hidden, len(sent), [text[:60] for text in sent.values()]))


def module_left(scene):
    """A compaction that would free little, or that is asked for in words, is the host's own."""
    ends(scene, module(scene, prompt="Look at it. <play:second>"))
    ends(scene, module(scene, "--continue", prompt="/compact"))
    ends(scene, module(scene, "--continue", prompt="Count. <play:bulk>"))
    ends(scene, module(scene, "--continue", prompt="/compact keep the numbers"))
    ends(scene, module(scene, "--continue", prompt="Go on. <play:helper>"))
    summaries = sum(bool(row.get("isCompactSummary")) for row in transcript(scene))
    if summaries != 2:
        fault(scene, "%d of 2 compactions were summed up by the model" % summaries)
    compare(scene)


def module_slow(scene):
    """The program takes 30 seconds for each event: the host goes on, and the hooks are not held back either."""
    path = os.path.join(scene.root, "acpdb")
    with open(path, "w", encoding="utf-8") as file:
        file.write("#!/bin/bash\ncase \"$(cat )\" in *session.*) sleep 30 ;; esac\necho '{}'\n")
    os.chmod(path, 0o755)
    ends(scene, module(scene, prompt="Read it twice. <play:again>", program=path))


def module_killed(scene):
    """The program is killed at each event of the module after the first: the hooks take over, and an import adds the rest, nothing twice."""
    path = os.path.join(scene.root, "acpdb")
    with open(path, "w", encoding="utf-8") as file:
        file.write("""#!/bin/bash
said="$(cat)"
case "$said" in
  *'"hook_event_name":"session.append"'*) printf '%%s' "$said" | timeout -s KILL 0.0$((RANDOM %% 6 + 1)) %s "$@" ;;
  *) printf '%%s' "$said" | %s "$@" ;;
esac
""" % (PROGRAM, PROGRAM))
    os.chmod(path, 0o755)
    ends(scene, module(scene, prompt="Rename the greeting. <play:main>", program=path, mode="record"))
    ends(scene, module(scene, "--continue", prompt="Read it twice. <play:again>", program=path))
    acpdb(scene, "store", "import", scene.home + RECORDINGS[scene.host])
    compare(scene)


def slow(scene):
    """acpdb takes 30 seconds for each line: the host goes on with its own messages."""
    path = os.path.join(scene.root, "acpdb")
    with open(path, "w", encoding="utf-8") as file:
        file.write("#!/bin/bash\nsleep 30\nexec %s \"$@\"\n" % PROGRAM)
    os.chmod(path, 0o755)
    attach(scene, "prune", program=path)
    ends(scene, play(scene, "Look at it. <play:second>"))


def missing(scene):
    attach(scene, "prune", program="/no/such/acpdb")
    ends(scene, play(scene, "Read it twice. <play:again>"))


def killed(scene):
    """Each hook is killed after a moment; what it had not recorded, an import adds, and nothing twice."""
    path = os.path.join(scene.root, "acpdb")
    with open(path, "w", encoding="utf-8") as file:
        # A plug-in's program lives as long as its host; it is killed after a while, and started again.
        while_ = "$((RANDOM %% 3)).$((RANDOM %% 9))" if scene.host in ("opencode", "pi") else "0.0$((RANDOM %% 6 + 1))"
        file.write(("#!/bin/bash\nexec timeout -s KILL " + while_ + " %s \"$@\"\n") % PROGRAM)
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


def through_the_proxy(scene, mode):
    """Starts a proxy before the provider, and has the host speak to it."""
    command = [PROGRAM, "--db", scene.root + "/store", "proxy", scene.url, "--listen", "127.0.0.1:0", "--mode", mode]
    with open(scene.root + "/proxy.err", "wb") as errors:
        environment = {**scene.environment, "ACPDB_PROXY_TOKEN": "laboratory"}
        process = subprocess.Popen(command, cwd=scene.project, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True)
    scene.url = process.stdout.readline().split()[0] + "/key/laboratory"
    return process


def proxied(scene):
    """No hook, only the proxy: superseded results are absent at the provider, whatever the host goes on having."""
    eager = [PROGRAM, "--db", scene.root + "/store", "policy", "set", "acp", "serve.mode=eager"]
    subprocess.run(eager, cwd=scene.project, env=scene.environment, capture_output=True, check=True)
    process = through_the_proxy(scene, "prune")
    try:
        ends(scene, play(scene, "Rename the greeting. <play:main>"))
        # Reasoning of this model is bound to what stands before it: what comes up within a turn waits for the next prompt.
        ends(scene, play(scene, "Look at it. <play:second>", "--continue"))
        ends(scene, play(scene, "And the other. <play:helper>", "--continue"))
    finally:
        process.kill()
    results = calls_on_the_wire(bodies(scene)[-1])
    reads = [text for _, tool, text in results if tool == "Read"]
    if sum("def greet" in text for text in reads) != 1 or not any("superseded" in text for text in reads):
        fault(scene, "through the proxy the reads on the wire are %s" % reads)
    signed = [block for message in bodies(scene)[-1]["messages"] for block in message["content"]
              if isinstance(block, dict) and block.get("type") == "thinking"]
    print("  %d blocks of reasoning are sent, of %d requests" % (len(signed), len(bodies(scene))))
    accepted(scene)
    again(scene)
    # The last answer came behind the last request.
    acpdb(scene, "store", "import", scene.home + RECORDINGS[scene.host])
    compare(scene)
    rows = acpdb(scene, "store", "log", "kind:host_recorded", "--json")
    if "proxy/request" not in rows:
        fault(scene, "no request of the proxy is in the log")


def proxied_responses(scene):
    """The same over OpenAI's responses."""
    eager = [PROGRAM, "--db", scene.root + "/store", "policy", "set", "acp", "serve.mode=eager"]
    subprocess.run(eager, cwd=scene.project, env=scene.environment, capture_output=True, check=True)
    process = through_the_proxy(scene, "prune")
    try:
        ends(scene, play(scene, "Rename the greeting. <play:main>"))
    finally:
        process.kill()
    last = bodies(scene)[-1]
    outputs = [item.get("output") for item in last["input"] if item.get("type", "").endswith("_output")]
    hidden = [text for text in outputs if isinstance(text, str) and text.startswith("[auto-superseded: ")]
    if not hidden or len(hidden) == len(outputs):
        fault(scene, "%d of %d results are placeholders on the wire" % (len(hidden), len(outputs)))
    for path in sorted(glob.glob(scene.wire + "/*.body")):
        done = subprocess.run([PROGRAM, "context", "lint", "--format", "responses", path], capture_output=True, text=True, check=False)
        if done.returncode:
            fault(scene, "lint refuses %s: %s" % (os.path.basename(path), done.stdout[:300] + done.stderr[:300]))
    again(scene)


def proxied_by_path(scene):
    """A host that names no session, behind a path: its conversation is recorded from its requests, and pruned."""
    eager = [PROGRAM, "--db", scene.root + "/store", "policy", "set", "acp", "serve.mode=eager"]
    subprocess.run(eager, cwd=scene.project, env=scene.environment, capture_output=True, check=True)
    process = through_the_proxy(scene, "prune")
    scene.url += "/acp/named"
    try:
        run = {"gemini": hosts.gemini, "copilot": hosts.copilot, "pi": hosts.pi}[scene.host]
        ends(scene, run(scene, prompt="Rename the greeting. <play:main>"))
    finally:
        process.kill()
    with open(sorted(glob.glob(scene.wire + "/*.body"))[-1], encoding="utf-8") as file:
        body = json.load(file)
    parts = [part["functionResponse"] for content in body.get("contents", []) for part in content["parts"] if "functionResponse" in part]
    outputs = [json.dumps(part["response"]) for part in parts]
    outputs += [json.dumps(message["content"]) for message in body.get("messages", []) if message["role"] == "tool"]
    blocks = [block for message in body.get("messages", []) if isinstance(message["content"], list) for block in message["content"]]
    outputs += [json.dumps(block["content"]) for block in blocks if block.get("type") == "tool_result"]
    hidden = [text for text in outputs if "[auto-superseded: " in text]
    if not hidden or len(hidden) == len(outputs):
        fault(scene, "%d of %d results are placeholders on the wire" % (len(hidden), len(outputs)))
    if "named" not in sessions(scene):
        fault(scene, "the session is not in the store: %s" % sessions(scene))
    calls = [row for row in shown(scene, "store", "named") if row[1]]
    if len(calls) != len(outputs) or any(row[2] not in ("completed", "failed") for row in calls):
        fault(scene, "%d calls are in the store, %d results on the wire: %s" % (len(calls), len(outputs), calls))
    again(scene)


def proxied_thread(scene):
    """The provider keeps the conversation: requests that add to it go as they are, the next whole one is pruned, and the store has all."""
    eager = [PROGRAM, "--db", scene.root + "/store", "policy", "set", "acp", "serve.mode=eager"]
    subprocess.run(eager, cwd=scene.project, env=scene.environment, capture_output=True, check=True)
    process = through_the_proxy(scene, "prune")
    if scene.host == "claude":
        scene.environment["CLAUDE_CODE_TETHER_LIVE"] = "1"
        words = {}
    else:
        scene.url += "/acp/named"
        words = {"thread": True}
    run = {"claude": hosts.claude, "pi": hosts.pi}[scene.host]
    try:
        ends(scene, run(scene, prompt="Rename the greeting. <play:main>", **words))
        ends(scene, run(scene, "--continue", prompt="Look at it. <play:second>", **words))
    finally:
        process.kill()
    sent = {"create": [], "continue": []}
    for path in sorted(glob.glob(scene.wire + "/*.body")):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        sent[json.loads(text)["thread"]["type"]].append(text)
    if len(sent["create"]) != 2 or not sent["continue"]:
        fault(scene, "%d requests tell all, %d only what is new" % (len(sent["create"]), len(sent["continue"])))
    if "superseded" in "".join(sent["continue"]) or "superseded" not in sent["create"][-1]:
        fault(scene, "placeholders stand on the wire in other requests than the whole one: %s" % sent["create"][-1][-3000:])
    accepted(scene)
    again(scene)
    if scene.host == "claude":
        acpdb(scene, "store", "import", scene.home + RECORDINGS[scene.host])
        return compare(scene)
    with open(sorted(glob.glob(scene.wire + "/*.whole"))[-1], encoding="utf-8") as file:
        results = calls_on_the_wire(json.load(file))
    calls = [row for row in shown(scene, "store", "named") if row[1]]
    if len(calls) != len(results) or any(row[2] not in ("completed", "failed") for row in calls):
        fault(scene, "%d calls are in the store, %d results at the provider: %s" % (len(calls), len(results), calls))


def proxied_damaged(scene):
    """The store is damaged, then gone, while the proxy runs: requests go through as they are."""
    process = through_the_proxy(scene, "prune")
    try:
        ends(scene, play(scene, "Look at it. <play:second>"))
        for path in glob.glob(scene.root + "/store/log/*"):
            with open(path, "r+b") as file:
                file.seek(max(0, os.path.getsize(path) // 2 - 32))
                file.write(random.Random(1).randbytes(64))
        ends(scene, play(scene, "Look at it. <play:second>", "--continue"))
        shutil.rmtree(scene.root + "/store")
        ends(scene, play(scene, "Look at it. <play:second>", "--continue"))
    finally:
        process.kill()


SCENES = {
    "claude": [plain, agent, packaged, proxied, proxied_thread, proxied_damaged, pruned, resumed, missing, killed, damaged, unwritable,
               module_recorded, module_pruned, module_folded, module_full, module_left, module_slow, module_killed],
    "codex": [plain, proxied_responses, pruned, resumed, missing, killed],
    "gemini": [plain, proxied_by_path, missing],
    "copilot": [proxied_by_path, pruned],
    "pi": [plain, proxied_by_path, proxied_thread, superseded, stable, tools, resumed, missing, killed, slow, damaged, unwritable],
    "opencode": [plain, agent, superseded, stable, tools, configured, commanded, compacted, resumed, locked, missing, killed, slow, damaged, unwritable],
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
            scene.model = "claude-lab"
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
