#!/usr/bin/env python3
"""Writes the seeds of the fuzz targets into corpus/. Plain Python 3, the same bytes each time.

`frame`: the first byte chooses (even: a frame as it is, odd: material for a round trip).
`segment`: the first byte chooses what stays of the real segment. `event`: kind, version, and whether the rest changes a real one.
`import_*`: a file of that format. `pattern`: a pattern, and below it a text.
`remote_restore`: changes of five bytes: object, act, two of a number, a value; odd values mend checksums.
`propose`: a message. `query`: a query, or a point in time. `arguments`: words of a command line, one a line.
"""

import json
import pathlib

HERE = pathlib.Path(__file__).parent / "corpus"


def save(folder, name, data):
    (HERE / folder).mkdir(exist_ok=True)
    (HERE / folder / name).write_bytes(data)


def lines(*records):
    return b"".join(json.dumps(record, separators=(",", ":")).encode() + b"\n" for record in records)


def assistant(uuid, parent, block):
    message = {"id": "msg_1", "role": "assistant", "model": "m", "content": [block]}
    return {"type": "assistant", "uuid": uuid, "parentUuid": parent, "sessionId": "s", "message": message}


def user(uuid, parent, content, **more):
    message = {"role": "user", "content": content}
    return {"type": "user", "uuid": uuid, "parentUuid": parent, "sessionId": "s", "message": message, **more}


READ = {"type": "tool_use", "id": "t1", "name": "Read", "input": {"file_path": "/p/a.ts"}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "     1\u2192x", "is_error": False}
BOUNDARY = {
    "type": "system",
    "subtype": "compact_boundary",
    "uuid": "d",
    "parentUuid": None,
    "logicalParentUuid": "c",
    "compactMetadata": {"trigger": "auto", "preTokens": 9},
}
CLAUDE_CODE = lines(
    user("a", None, "hello", cwd="/p", version="2.1.9", timestamp="2026-03-12T09:02:11.408Z"),
    assistant("b", "a", READ),
    user("c", "b", [RESULT]),
    BOUNDARY,
    user("e", "d", "a summary", isCompactSummary=True),
)
OPENCODE = {
    "info": {"id": "ses_1", "directory": "/p", "title": "t", "version": "1.3.7", "time": {"created": 1, "updated": 2}},
    "messages": [
        {
            "info": {"id": "msg_1", "sessionID": "ses_1", "role": "assistant", "time": {"created": 1}},
            "parts": [
                {"id": "prt_1", "type": "step-start", "snapshot": "0"},
                {
                    "id": "prt_2",
                    "type": "tool",
                    "callID": "c1",
                    "tool": "read",
                    "state": {"status": "completed", "input": {"filePath": "/p/a"}, "output": "x", "title": "a"},
                },
            ],
        }
    ],
}
CODEX = lines(
    {"timestamp": "2026-03-12T09:02:11.408Z", "type": "session_meta", "payload": {"id": "s", "cwd": "/p"}},
    {
        "type": "response_item",
        "payload": {"type": "function_call", "name": "shell", "arguments": '{"command":["ls"]}', "call_id": "c"},
    },
    {"type": "response_item", "payload": {"type": "function_call_output", "call_id": "c", "output": "Exit code: 0"}},
    {"type": "compacted", "payload": {"message": "", "replacement_history": []}},
)
CALL = {"id": "c", "name": "read_file", "args": {"file_path": "a"}, "status": "success", "result": None}
GEMINI = {"sessionId": "s", "projectHash": "p", "messages": [{"id": "m", "type": "gemini", "content": "", "toolCalls": [CALL]}]}
COPILOT = lines(
    {"type": "session.start", "id": "1", "parentId": None, "data": {"sessionId": "s", "version": 1}},
    {"type": "assistant.turn_start", "id": "2", "parentId": "1", "data": {}},
    {"type": "tool.execution_start", "id": "3", "data": {"toolCallId": "t", "toolName": "view", "arguments": {"path": "a"}}},
    {"type": "tool.execution_complete", "id": "4", "data": {"toolCallId": "t", "success": False, "error": {"message": "no"}}},
)
ASKED = {"id": "c", "type": "function", "function": {"name": "get_user", "arguments": "{\"id\": 1.0}"}}
MESSAGES = [
    {"role": "user", "content": "hi"},
    {"role": "assistant", "content": None, "tool_calls": [ASKED]},
    {"role": "tool", "tool_call_id": "c", "content": "Error: no such user"},
]
TRAJECTORY = {"trajectory": [{"action": "open a.py", "observation": "x", "response": "r", "state": "{}"}], "history": [], "info": {}}
DECISIONS = lines(
    {"id": "d-1", "title": "one", "status": "Final", "created": "2020-01-01", "replaces": [], "superseded_by": ["d-2"]},
    {"id": "d-2", "title": "two", "status": "Draft", "created": "2021-01-01", "replaces": ["d-1"], "superseded_by": []},
)
PREFERENCES = lines(
    {"ts": "2026-01-01T00:00:00Z", "commit": "0", "category": "deps", "key": "k", "value": "1", "previous": None},
    {"ts": "2026-01-02T00:00:00Z", "commit": "1", "category": "deps", "key": "k", "value": None, "previous": "1"},
)


def one(value):
    return json.dumps(value, ensure_ascii=False).encode()


FILES = [
    ("claude-code", CLAUDE_CODE),
    ("opencode", one(OPENCODE)),
    ("codex", CODEX),
    ("gemini-cli", one(GEMINI)),
    ("copilot-cli", COPILOT),
    ("openai-messages", one(MESSAGES)),
    ("swe-agent", one(TRAJECTORY)),
    ("memory-decisions", DECISIONS),
    ("memory-preferences", PREFERENCES),
]

for name, data in FILES:
    folder = "import_" + name.replace("-", "_")
    save(folder, "whole", data)
    save(folder, "cut", data[: len(data) * 2 // 3])
    save(folder, "not-utf8", data[:20] + b"\xff\xfe\x00" + data[20:])
    save(folder, "deep", b"[" * 3000)
    save(folder, "twice", data + data)
save("import_claude_code", "glued", CLAUDE_CODE.replace(b"}\n{", b"}{"))

save("segment", "nothing", b"\0")
save("segment", "header", b"\1")
save("segment", "header-zeros", b"\1" + bytes(1000))
save("segment", "frame", b"\2" + b"\xff" * 100)
save("segment", "half", b"\4" + bytes(range(200)))
save("store", "nothing", b"")
save("store", "some", bytes((n * 37) % 256 for n in range(200)))
save("store", "flip", bytes([3, 0, 9, 0, 0, 0, 0, 1]))
for kind in range(0, 40, 3):
    save("event", f"real-{kind}", bytes([kind, 1, 1]))
    save("event", f"flipped-{kind}", bytes([kind, 1, 1, 9, 1, 40, 0x80, 77, 2]))
save("event", "bytes", bytes([2, 1, 0]) + bytes(range(64)))
# A turn with a key, and with a key that no program knows yet: it is passed over if it is even.
for name, rest in {"turn": "a105616b", "even-key": "a205616b181e8201a0", "odd-key": "a205616b181f00", "default": "a10500"}.items():
    save("event", name, bytes([4, 1, 0]) + bytes.fromhex(rest))
for name, text in {
    "glob": "src/**/[a-z]*.ts\nsrc/a/b.ts",
    "braces": "{a,b{c,d}}*\nabd",
    "stars": "*" * 60 + "x\n" + "a" * 200,
    "between": "start...end\nstart of it, and the end",
    "call": '{"action":"discard","targets":["*"]}',
    "distill": '{"action":"distill","targets":[["r_12345","a summary"]]}',
    "hash": "r_00000\nx",
}.items():
    save("pattern", name, text.encode())
for name, text in {
    "preset": '"balanced"',
    "some": '{"automatic":false,"turn_protection":true,"turn_protection.turns":2}',
    "lists": '{"protected_tools":["read","todo*"],"protected_files":["**/.env"]}',
    "toml": 'preset = "acp"\nturn_protection = true\n[truncate]\nmax_tokens = 10\n',
    "wrong": '{"automatic":"yes","nothing":1}',
    "large": '{"turn_protection.turns":99999999999999999999}',
}.items():
    save("policy", name, text.encode())
save("differential", "empty", b"")
for seed in range(6):
    save("differential", f"some-{seed}", bytes((n * n * (seed + 3) + n * 11) % 256 for n in range(160)))
save("canary", "quiet", b"{}")

save("frame", "empty", b"\0")
save("frame", "zeros", b"\0" + bytes(176))
save("frame", "magic", b"\0ACPF\2\1\0\0" + b"\xff" * 168)
save("frame", "one-event", b"\1" + bytes(range(48)))
save("frame", "equal-bodies", b"\3" + bytes(range(48)) * 3)
save("frame", "no-body", b"\5" + bytes(range(12)))
save("frame", "many", b"\xff" + bytes((n * 7) % 256 for n in range(48 * 20)))

MESSAGES_SAID = {
    "not-use": "not npm, use pnpm. Not tabs but spaces!",
    "change": "change from X to Y; please switch npm to pnpm",
    "instead": "instead of waiting for CI try local runs, and use pnpm instead of npm",
    "hints": "No, the first one. Actually, it is v1.2.3\nI meant THIS one",
    "facts": "I\u2019m \u00c9mile Zola, I am a developer at Acme. The deadline is on 12/24, presenting on Friday.",
    "preferences": "We always use vitest with 4 spaces, never jest; I prefer VS Code, switched to yarn",
    "decisions": "Let's go with React for frontend. We decided to use redb. The approach will be: event sourcing\n",
    "nested": "not not npm, use use pnpm, but but use it instead of instead of that, no, no, actually actually",
    "wide": "not \u0130stanbul, use \U0001f600. I'm \u01c5ames \u1e9e\u0301 not \ufb03x but use \u200by",
    "spaces": "not\u00a0npm,\u2003use\tpnpm.\u0085no,\u2028the first",
}
for name, text in MESSAGES_SAID.items():
    save("propose", name, text.encode())
save("propose", "cut", "I'm \u00c9mile. not npm, use \u00e9".encode()[:-1])
save("propose", "not-utf8", b"not \xff\xfe, use \x80pnpm; my name is \xc3")
save("propose", "long", b"not a, use b. " * 300)

for name, text in {
    "items": "kind:tool tool:read,grep file:src/** state:superseded rule:file turn:10..20 tokens:>1000 seq:800..",
    "either": "(actor:assistant or status:failed) not session:ses_01 !call:toolu_01 host:codex",
    "texts": 'timeout text:"connection \\" refused" "two words"',
    "times": "since:2d until:yesterday since:2026-03-12 until:2026-03-12T09:02:11Z",
    "deep": "(" * 40 + "a" + ")" * 40,
    "open": '(a or "b',
    "unknown": "colour:red kind:tol",
    "wide": "text:\u0130\u1e9e \U0001f600 \u200b:x",
    "seq": "#812",
    "turn": "t12",
    "back": "-3t",
    "mark": "@compact-1",
    "ago": "10m ago",
    "clock": "yesterday 14:00",
    "day": "2026-02-29",
    "edge": "9999-12-31T23:59:59.999999999Z",
    "span": "P99999999Y ago",
}.items():
    save("query", name, text.encode())
for name, words in {
    "history": ["history", "--chain", "r_1a2b3", "--json"],
    "query": ["log", "kind:tool", "not", "status:failed", "--limit", "3", "--after", "x"],
    "act": ["context", "distill", "r_1=short", "--session", "s"],
    "erase": ["erase", "#812", "--reason", "API key"],
    "global": ["--db", "x", "--at", "t12", "stats", "--style", "acp"],
    "import": ["import", "--format", "codex", "--redact-rule", "n=[a-z]+", "a", "b"],
    "fork": ["fork", "s1", "--at", "-3t"],
    "help": ["help", "memory", "add"],
    "wrong": ["histroy", "--chian", ""],
    "policy": ["policy", "set", "file.edit_clears=[]", "--session", "s1"],
    "dashes": ["--", "-", "--=", "-x=1"],
}.items():
    save("arguments", name, "\n".join(words).encode())
save("arguments", "not-utf8", b"show\n\xff\xfe\n--body\n1")

for name, steps in {
    "as-it-is": [],
    "flip-head": [(1, 0, 0, 200, 2)],
    "forged-head": [(1, 0, 0, 56, 1), (1, 2, 0, 12, 255)],
    "forged-run": [(number, 0, 1, 64, 3) for number in range(2, 12)],
    "cut": [(9, 3, 0, 100, 0), (7, 5, 0, 0, 0)],
    "swapped": [(5, 6, 0, 9, 0), (9, 6, 0, 5, 0)],
    "names": [(4, 7, 0, number, 0) for number in range(7)],
    "long": [(3, 4, 255, 255, 1), (1, 4, 255, 255, 1)],
}.items():
    save("remote_restore", name, b"".join(bytes(step) for step in steps))
