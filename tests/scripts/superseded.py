#!/usr/bin/env python3
"""Superseded calls by rule and folder, counted from the recordings alone with the default rules.

    python3 tests/scripts/superseded.py DATA        compare with: cargo run --example superseded -p acpdb-tests -- DATA

Needs `zstd` on the path for compressed files. Written from the rules, sharing nothing with the program; every call is
compared with every earlier one. The rules: repeat (`hash`), file matrix, todo; equal or lower turns never supersede,
both calls are completed, protected tools and files stay, a compaction leaves everything behind.
"""
import fnmatch
import json
import os
import posixpath
import re
import subprocess
import sys
from collections import Counter

READ, WRITE, EDIT, DELETE = "read", "write", "edit", "delete"
FILES = {
    "claude-code": {"Read": (READ, "file_path"), "NotebookRead": (READ, "notebook_path"), "Write": (WRITE, "file_path"),
                    "Edit": (EDIT, "file_path"), "MultiEdit": (EDIT, "file_path"), "NotebookEdit": (EDIT, "notebook_path")},
    "opencode": {"read": (READ, "filePath"), "write": (WRITE, "filePath"), "edit": (EDIT, "filePath"),
                 "multiedit": (EDIT, "filePath")},
    "gemini-cli": {"read_file": (READ, "file_path"), "write_file": (WRITE, "file_path"), "replace": (EDIT, "file_path")},
    "copilot-cli": {"view": (READ, "path"), "create": (WRITE, "path"), "edit": (EDIT, "path")},
}
TODO_WRITE = {"todowrite", "TodoWrite", "update_plan", "write_todos"}
TODO_READ = {"todoread", "TodoRead", "TaskList"}
PROTECTED = set("context_info task todowrite todoread discard_tool discard_msg distill_tool distill_msg restore_tool "
                "restore_msg context batch plan_enter plan_exit".split())
EXCEPT = ("write_stdin read_bash stop_bash TaskOutput BashOutput AgentOutputTool TaskCreate TaskUpdate tracker_* book_* "
          "cancel_* create_* delete_* exchange_* modify_* place_* remove_* return_* send_* submit* transfer_* "
          "update_*").split()
PROTECTED_FILES = re.compile(r"(^|/)(\.env(\.[^/]*)?|credentials\.json|secrets\.json|[^/]*\.pem|[^/]*\.key)$")


def resolve(path, cwd):
    if cwd and not path.startswith("/"):
        path = cwd + "/" + path
    return re.sub("^//", "/", posixpath.normpath(path))


def keys(host, tool, params, cwd):
    """All (class, resolved file, given file) of a call."""
    found = []
    text = params if isinstance(params, str) else None
    if isinstance(params, dict) and tool == "apply_patch":
        text = params.get("patchText") or params.get("input") or params.get("patch")
    if tool == "apply_patch" and isinstance(text, str):
        update = None
        for line in text.splitlines():
            for head, kind in (("*** Add File: ", WRITE), ("*** Update File: ", EDIT), ("*** Delete File: ", DELETE),
                               ("*** Move to: ", WRITE)):
                if line.startswith(head):
                    if head == "*** Move to: " and update is not None:
                        found[update] = (DELETE,) + found[update][1:]
                    path = line[len(head):].strip()
                    update = len(found) if kind == EDIT else None
                    found.append((kind, resolve(path, cwd), path))
    known = FILES.get(host, {}).get(tool)
    if known and isinstance(params, dict):
        kind, name = known
        for name in [name] + (["absolute_path", "path"] if tool == "read_file" else []):
            path = params.get(name)
            if isinstance(path, str) and path:
                found.append((kind, resolve(path, cwd), path))
                break
        for edit in params.get("edits") or [] if tool == "multiedit" else []:
            if isinstance(edit, dict) and edit.get("filePath"):
                found.append((EDIT, resolve(edit["filePath"], cwd), edit["filePath"]))
    return found


class Stream:
    """One conversation: calls are started, finished and compared here."""

    def __init__(self, host, cwd=None):
        self.host, self.cwd, self.turn, self.calls, self.edges = host, cwd, 0, [], Counter()

    def start(self, call_id, tool, params):
        plain = params
        found = keys(self.host, tool, params, self.cwd)
        known = FILES.get(self.host, {}).get(tool)
        if known and isinstance(params, dict) and isinstance(params.get(known[1]), str) and params[known[1]]:
            plain = dict(params, **{known[1]: resolve(params[known[1]], self.cwd)})
        self.calls.append({"id": call_id, "tool": tool, "turn": self.turn, "keys": found, "done": None, "ready": False,
                           "gone": False, "left": False,
                           "same": (tool.lower(), json.dumps(plain, sort_keys=True))})

    def finish(self, call_id, good):
        open_calls = [call for call in self.calls if call["id"] == call_id and call["done"] is None]
        if not open_calls:
            return
        new = open_calls[-1]
        new["done"] = good
        if not good or new["left"]:
            return
        for rule in ("hash", "file", "todo"):
            for old in self.calls:
                if (old["ready"] and not old["gone"] and not old["left"] and old["turn"] < new["turn"]
                        and not any(PROTECTED_FILES.search(path) for key in old["keys"] for path in key[1:])
                        and (rule == "todo" or old["tool"] not in PROTECTED) and getattr(self, rule)(old, new)):
                    old["gone"] = True
                    self.edges[rule] += 1
        new["ready"] = True

    @staticmethod
    def hash(old, new):
        name = re.sub(r"^mcp__[^_]+(_[^_]+)*?__", "", new["tool"])
        if new["tool"] not in TODO_WRITE | TODO_READ and any(fnmatch.fnmatchcase(name, one) for one in EXCEPT):
            return False
        return old["same"] == new["same"]

    @staticmethod
    def file(old, new):
        return any(n[0] in (WRITE, EDIT, DELETE) and o[0] in (READ, WRITE, EDIT) and n[1] == o[1]
                   for n in new["keys"] for o in old["keys"])

    @staticmethod
    def todo(old, new):
        return any(old["tool"] in kind and new["tool"] in kind for kind in (TODO_WRITE, TODO_READ))

    def compact(self):
        for call in self.calls:
            call["left"] = True


def text_of(path):
    if path.endswith(".zst"):
        return subprocess.run(["zstd", "-dcq", path], check=True, capture_output=True).stdout.decode()
    with open(path, encoding="utf-8") as file:
        return file.read()


def claude_code(lines):
    streams, seen_messages, seen_ids = {}, set(), set()

    def message(record, name, cwd):
        body = record.get("message") or {}
        stream = streams.setdefault(name, Stream("claude-code", cwd))
        if record.get("type") == "assistant" and (name, body.get("id")) not in seen_messages:
            seen_messages.add((name, body.get("id")))
            stream.turn += 1
        for block in body.get("content") if isinstance(body.get("content"), list) else []:
            if block.get("type") == "tool_use":
                if (name, block["id"]) not in seen_ids:
                    seen_ids.add((name, block["id"]))
                    stream.start(block["id"], block["name"], block.get("input"))
            elif block.get("type") == "tool_result":
                stream.finish(block["tool_use_id"], not block.get("is_error"))

    uuids = set()
    for record in lines:
        if record.get("uuid") in uuids:
            continue
        if record.get("uuid"):
            uuids.add(record["uuid"])
        cwd, kind = record.get("cwd"), record.get("type")
        if kind in ("assistant", "user"):
            message(record, record.get("agentId") if record.get("isSidechain") else "main", cwd)
        elif kind == "progress" and (record.get("data") or {}).get("type") == "agent_progress":
            data = record["data"]
            nested = data.get("message") or {}
            message(nested, data.get("agentId") or record.get("parentToolUseID"), cwd)
        elif kind == "system" and record.get("subtype") == "compact_boundary" and "main" in streams:
            streams["main"].compact()
    return streams.values()


def opencode(document):
    stream = Stream("opencode", document["info"].get("directory"))
    for message in document["messages"]:
        for part in message["parts"]:
            if part["type"] == "step-start":
                stream.turn += 1
            elif part["type"] == "compaction":
                stream.compact()
            elif part["type"] == "tool":
                state = part["state"]
                stream.start(part["id"], part["tool"], state.get("input"))
                if state["status"] in ("completed", "error"):
                    stream.finish(part["id"], state["status"] == "completed")
    return [stream]


def codex(lines):
    stream, after_output = Stream("codex"), True
    ends = {}
    for record in lines:
        body = record.get("payload") or {}
        if record["type"] == "event_msg" and body.get("type") == "exec_command_end":
            ends[body.get("call_id")] = body.get("exit_code")
    for record in lines:
        body, kind = record.get("payload") or {}, None
        if record["type"] in ("session_meta", "turn_context") and body.get("cwd"):
            stream.cwd = body["cwd"]
        if record["type"] == "compacted":
            stream.compact()
        if record["type"] != "response_item":
            continue
        kind = body["type"]
        if kind == "message" and body.get("role") != "assistant" or kind.endswith("_output"):
            after_output = True
        elif after_output:
            stream.turn += 1
            after_output = False
        if kind in ("function_call", "custom_tool_call", "tool_search_call"):
            params = body.get("arguments") if kind != "custom_tool_call" else body.get("input")
            if isinstance(params, str) and kind == "function_call":
                try:
                    params = json.loads(params)
                except ValueError:
                    pass
            stream.start(body.get("call_id"), body.get("name") or "tool_search", params)
        elif kind in ("function_call_output", "custom_tool_call_output", "tool_search_output"):
            output = body.get("output")
            output = output if isinstance(output, str) else json.dumps(output)
            code = re.search(r'(?:exit code:? |Exit code: |"exit_code":\s*|exited with code )(-?\d+)', output[:400])
            good = not (code and int(code.group(1))) and "verification failed" not in output[:200]
            stream.finish(body.get("call_id"), good)
    return [stream]


def copilot(lines):
    stream = Stream("copilot-cli")
    for record in lines:
        data = record.get("data") or {}
        if record["type"] == "session.start":
            stream.cwd = (data.get("context") or {}).get("cwd")
        elif record["type"] == "assistant.turn_start":
            stream.turn += 1
        elif record["type"] == "tool.execution_start":
            stream.start(data["toolCallId"], data["toolName"], data.get("arguments"))
        elif record["type"] == "tool.execution_complete":
            stream.finish(data["toolCallId"], data.get("success"))
    return [stream]


def gemini(document):
    stream = Stream("gemini-cli")
    for message in document["messages"]:
        if message["type"] == "gemini":
            stream.turn += 1
            for call in message.get("toolCalls") or []:
                stream.start(call["id"], call["name"], call.get("args"))
                stream.finish(call["id"], call.get("status") == "success")
    return [stream]


def openai(document):
    streams = []
    for run in document:
        stream = Stream("openai-messages")
        for message in run["traj"]:
            if message["role"] == "assistant":
                stream.turn += 1
                for call in message.get("tool_calls") or []:
                    stream.start(call["id"], call["function"]["name"], json.loads(call["function"]["arguments"]))
            elif message["role"] == "tool":
                stream.finish(message["tool_call_id"], not str(message.get("content")).startswith("Error"))
        streams.append(stream)
    return streams


def swe_agent(document):
    stream = Stream("swe-agent")
    for number, step in enumerate(document["trajectory"]):
        stream.turn += 1
        stream.start(number, "shell", {"command": step.get("action")})
        stream.finish(number, True)
    return [stream]


READERS = {"claude-code": claude_code, "claude-code-large": claude_code, "opencode": opencode, "codex": codex,
           "copilot-cli": copilot, "gemini-cli": gemini, "openai-messages": openai, "swe-agent": swe_agent}


def main(data):
    for folder, _, names in sorted(os.walk(data)):
        name = os.path.relpath(folder, data)
        reader = READERS.get(name.split("/")[0])
        if not reader or not names:
            continue
        counts = Counter()
        for file in sorted(names):
            text = text_of(os.path.join(folder, file))
            by_line = reader in (claude_code, codex, copilot)
            content = [json.loads(line) for line in text.splitlines() if line.strip()] if by_line else json.loads(text)
            for stream in reader(content):
                counts.update(stream.edges)
        print(f"{name}: hash {counts['hash']} file {counts['file']} todo {counts['todo']}")


if __name__ == "__main__":
    main(sys.argv[1])
