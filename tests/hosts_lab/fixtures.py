"""What is kept of a scene: the host's recording, and the messages of each request.

    recording/...     the host's own files, below the folder where it keeps them
    requests.jsonl    a request a line: {"api", "kind", "model", "session", "usage", "keep": n, "messages": [...]}; the
                      first n messages are those of the request before of the same session

System prompts and definitions of tools are not kept: they are the hosts' own texts, and no message. Long texts of that
kind inside a recording are cut, and say so.
"""
import glob
import json
import os
import shutil
import sqlite3

LISTS = {"anthropic": "messages", "chat": "messages", "responses": "input", "gemini": "contents"}
CUT = "[cut: %d bytes]"
PLACES = {
    "claude": [".claude/projects"], "codex": [".codex/sessions"], "gemini": [".gemini/tmp"],
    "opencode": [".local/share/opencode/opencode.db"], "copilot": [".copilot/session-state"], "pi": [".pi/agent/sessions"],
}


def dumps(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def keep(scene, version, out):
    shutil.rmtree(out, ignore_errors=True)
    os.makedirs(out)
    count = requests(scene, out)
    for place in PLACES[scene.host]:
        recording(scene, place, os.path.join(out, "recording"))
    with open(os.path.join(out, "version"), "w", encoding="utf-8") as file:
        file.write(version + "\n")
    return "%d requests" % count


def session_of(meta, body):
    heads = {name.lower(): value for name, value in meta["headers"].items()}
    agent = heads.get("x-claude-code-agent-id")
    named = heads.get("x-claude-code-session-id") or heads.get("x-session-id") or heads.get("session-id")
    named = heads.get("thread-id") or named
    return "%s/%s" % (named, agent) if agent else named


def requests(scene, out):
    before, count = {}, 0
    with open(os.path.join(out, "requests.jsonl"), "w", encoding="utf-8") as file:
        for path in sorted(glob.glob(os.path.join(scene.wire, "*.json"))):
            with open(path, encoding="utf-8") as meta_file:
                meta = json.load(meta_file)
            # A request of a thread tells only what is new: the provider put the conversation together.
            whole = path[:-5] + ".whole"
            with open(whole if os.path.exists(whole) else path[:-5] + ".body", encoding="utf-8") as body_file:
                body = json.load(body_file)
            session = session_of(meta, body)
            # A mark of the cache moves from message to message and says nothing.
            messages = [dumps(uncached(message)) for message in spoken(scene.host, meta["api"], body[LISTS[meta["api"]]])]
            old = before.get(session, [])
            shared = 0
            while shared < min(len(old), len(messages)) and old[shared] == messages[shared]:
                shared += 1
            before[session] = messages
            head = {"api": meta["api"], "kind": meta["kind"], "model": meta["model"], "session": session, "usage": meta["usage"], "keep": shared}
            file.write(dumps(head)[:-1] + ',"messages":[' + ",".join(messages[shared:]) + "]}\n")
            count += 1
    return count


def spoken(host, api, messages):
    """The messages without a system prompt, which two APIs have among them. Codex's is recorded."""
    if api not in ("chat", "responses") or host == "codex":
        return messages
    first = next((at for at, it in enumerate(messages) if it.get("role") not in ("system", "developer")), 0)
    return messages[first:]


def uncached(value):
    if isinstance(value, list):
        return [uncached(one) for one in value]
    if isinstance(value, dict):
        return {name: one if name in ("input", "args") else uncached(one) for name, one in value.items() if name != "cache_control"}
    return value


def recording(scene, place, out):
    source = os.path.join(scene.home, place)
    if place.endswith(".db"):
        os.makedirs(out, exist_ok=True)
        database(source, os.path.join(out, os.path.basename(place)))
        return
    for path in sorted(glob.glob(os.path.join(source, "**", "*"), recursive=True)) + glob.glob(os.path.join(source, "*", ".*")):
        if not os.path.isfile(path):
            continue
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read()
        except UnicodeDecodeError:  # Copilot's own database beside its events.
            continue
        to = os.path.join(out, os.path.relpath(path, source))
        os.makedirs(os.path.dirname(to), exist_ok=True)
        if path.endswith(".jsonl"):
            text = "".join(lean(scene.host, line) for line in text.splitlines(True))
        if scene.host == "pi":
            # Its system prompt names the folder that it is installed in, which is another on each machine.
            text = text.replace(scene.installed, "/tmp/acpdb-hosts/pi")
        with open(to, "w", encoding="utf-8") as file:
            file.write(text)


def lean(host, line):
    """A line without the host's own long texts."""
    if host == "claude" and ('"prompt_snapshot"' in line or '"api-request-shape"' in line):
        value = json.loads(line)
        for name in ("systemPrompt", "tools"):
            if name in (value.get("attachment") or {}):
                value["attachment"][name] = [CUT % len(dumps(value["attachment"][name]))]
        if "shape" in value:
            value["shape"] = CUT % len(dumps(value["shape"]))
        return dumps(value) + "\n"
    if host == "copilot" and ('"type":"model.' in line):
        # Whole requests, and the system prompt with them.
        value = json.loads(line)
        for name in ("requestMessages", "messages", "response"):
            if name in value["data"]:
                value["data"][name] = CUT % len(dumps(value["data"][name]))
        return dumps(value) + "\n"
    if host == "copilot" and '"type":"system.message"' in line:
        value = json.loads(line)
        value["data"]["content"] = CUT % len(value["data"]["content"])
        return dumps(value) + "\n"
    return line


def database(source, to):
    """A copy in one file, without what the host keeps beside sessions."""
    old = sqlite3.connect("file:%s?mode=ro" % source, uri=True)
    new = sqlite3.connect(to)
    old.backup(new)
    old.close()
    for (table,) in new.execute("select name from sqlite_master where type='table' and name like 'account%'").fetchall():
        new.execute("delete from " + table)
    new.commit()
    new.execute("pragma journal_mode=delete")
    new.execute("vacuum")
    new.close()
