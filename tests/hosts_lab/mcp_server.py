#!/usr/bin/env python3
"""A tool server on standard input and output with one tool, `recall`."""
import json
import sys

TOOL = {"name": "recall", "description": "Recalls something of the lab.", "annotations": {"readOnlyHint": True},
        "inputSchema": {"type": "object", "properties": {"what": {"type": "string"}}, "required": ["what"]}}

for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    params = asked.get("params") or {}
    answers = {
        "initialize": lambda: {"protocolVersion": params.get("protocolVersion"), "capabilities": {"tools": {}},
                               "serverInfo": {"name": "lab", "version": "1"}},
        "tools/list": lambda: {"tools": [TOOL]},
        "tools/call": lambda: {"content": [{"type": "text", "text": "recalled " + params["arguments"]["what"]}]},
        "ping": dict,
    }
    known = answers.get(asked["method"])
    said = {"result": known()} if known else {"error": {"code": -32601, "message": "no such method"}}
    print(json.dumps(dict({"jsonrpc": "2.0", "id": asked["id"]}, **said)), flush=True)
