#!/usr/bin/env python3
"""A provider without a model: it says what a play says, and writes down what hosts send.

Four APIs: Anthropic Messages, OpenAI Responses, OpenAI Chat Completions, Gemini; streaming or not. A prompt names its
play as `<play:NAME>`; the turns that the model has had since then tell which line is next. So nothing but threads is remembered
between requests, and a request that is sent again gets the same answer. Requests for a summary get one that goes on
with the play `after`; whatever else names no play (titles, classifiers) gets a short text.

Each request is kept as it came: `NNNN.json` with the path, headers and what was answered, `NNNN.body` with its bytes.
Message threads of Anthropic's are kept, too: a request that goes on with one is put together, and kept whole as `NNNN.whole`.
"""
import argparse
import hashlib
import json
import os
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tools import call_of

PLAY = re.compile(r"<play:([a-z_-]+)>")
SUMMARY = "SUMMARY OF THE LAB"
ASKS_SUMMARY = re.compile(
    r"(?i)(detailed|anchored|handoff|structured) summary|context checkpoint|state_snapshot|create a summary|summarize the conversation")
PICTURE = ("iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAEklEQVR4nGP4z8CAFWEXHbQSACj/P8Fu7N9hAAAAAElFTkSuQmCC")


def strings(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for one in value:
            yield from strings(one)
    elif isinstance(value, dict):
        for one in value.values():
            yield from strings(one)


def moves(api, body):
    """Who spoke, in order: ("user" | "model" | "result", text)."""
    if api == "anthropic":
        for message in body.get("messages") or []:
            content = message.get("content")
            blocks = content if isinstance(content, list) else [{"type": "text", "text": content or ""}]
            for block in blocks:
                if message["role"] == "assistant":
                    yield "model", block.get("text") or ""
                elif block.get("type") == "tool_result":
                    yield "result", ""
                else:
                    yield "user", block.get("text") or ""
    elif api == "chat":
        for message in body.get("messages") or []:
            who = {"assistant": "model", "tool": "result", "user": "user"}.get(message.get("role"))
            if who:
                yield who, "\n".join(strings(message.get("content")))
    elif api == "responses":
        for item in body.get("input") or []:
            kind = item.get("type") or "message"
            if kind.endswith("_output"):
                yield "result", ""
            elif kind == "message" and item.get("role") != "assistant":
                yield "user", "\n".join(strings(item.get("content")))
            else:
                yield "model", ""
    else:
        for content in body.get("contents") or []:
            for part in content.get("parts") or []:
                if content.get("role") == "model":
                    yield "model", ""
                elif "functionResponse" in part:
                    yield "result", ""
                else:
                    yield "user", part.get("text") or ""


def place(api, body):
    """(play, line) or None, and what the user said last."""
    play, line, before, newest = None, 0, "", ""
    for who, text in moves(api, body):
        # What acpdb quotes of earlier prompts is no prompt.
        text = text.partition("[acpdb] The compaction")[0]
        named = PLAY.findall(text) if who == "user" or SUMMARY in text else []
        if named:
            play, line = named[-1], 0
        elif who == "model" and before != "model":
            line += 1
        newest = newest + "\n" + text if who == "user" else "" if who == "model" else newest
        before = "user" if named else who
    return (play and (play, line)), newest


def written(value, path):
    """The text with which a call in a request wrote this file, as the model sees it; "" if it sees no such call."""
    if isinstance(value, str) and value.startswith("{") and path in value:
        try:
            value = json.loads(value)
        except ValueError:
            return ""
    if isinstance(value, dict):
        texts = [value[name] for name in ("content", "file_text") if isinstance(value.get(name), str)]
        if texts and any(isinstance(one, str) and one.endswith(path) for one in value.values()):
            return texts[0]
        value = list(value.values())
    return next(filter(None, (written(one, path) for one in value)), "") if isinstance(value, list) else ""


def has_tools(body):
    return bool(body.get("tools"))


class Stage:
    def __init__(self, args):
        with open(args.plays, encoding="utf-8") as file:
            self.plays = json.load(file)
        self.host, self.project, self.log = args.host, args.project, args.log
        self.lock = threading.Lock()
        self.count = 0
        self.before = b""
        self.threads = {}

    def number(self):
        with self.lock:
            self.count += 1
            return self.count

    def usage(self, raw, said):
        """Tokens as a quarter of the bytes; the shared beginning of two requests in a row was cached."""
        with self.lock:
            shared = len(os.path.commonprefix([self.before, raw])) // 4
            self.before = raw
        whole = len(raw) // 4
        write, long = (128, 28) if shared else (0, 0)
        return {"whole": whole, "read": shared // 64 * 64, "write": write, "long": long, "out": 1 + len(said) // 4}

    def answer(self, api, body):
        """What is said: kind, thinking, text, calls [(id, tool, arguments, namespace)]."""
        where, newest = place(api, body)
        if ASKS_SUMMARY.search(newest):
            return {"kind": "summary", "text": SUMMARY + ": a.py was read and edited. <play:after>", "calls": []}
        if where is None or not has_tools(body):
            return {"kind": "helper", "text": "A title", "calls": []}
        play, line = where
        lines = self.plays.get(play, [])
        if line >= len(lines):
            return {"kind": "main", "text": "Nothing more to say.", "calls": [], "at": where}
        said = lines[line]
        calls = []
        for number, call in enumerate(said.get("calls") or []):
            if "hash" in call:  # The hash that stands under the first result of a tool.
                found = re.search(r"\[(%s_[0-9a-f]{5,})\]" % call["hash"][0], json.dumps(body))
                call = dict(call, hash=found.group(1) if found else "none")
            if "about" in call:  # The id of a row that a text tells.
                row = next((line for text in strings(body) for line in text.splitlines() if call["about"] in line and re.search(r"#\d+", line)), "")
                found = re.search(r"#\d+", row)
                call = dict(call, query=found.group() if found else call["about"])
            if "copy" in call:
                call = dict(call, text=written(body, call["copy"]))
            made = call_of(self.host, call, self.project)
            if made is None:  # The host has nothing for it: something else is called, so that the play goes on.
                made = call_of(self.host, {"do": "run", "command": "true"}, self.project)
            seed = "%s/%d/%d/%s" % (play, line, number, len(list(moves(api, body))))
            name = hashlib.sha256(seed.encode()).hexdigest()[:24]
            calls.append((("toolu_01" if api == "anthropic" else "call_") + name,) + made)
        return {"kind": "main", "thinking": said.get("thinking"), "text": said.get("text"), "calls": calls, "at": where,
                "whole": said.get("whole")}


def anthropic(body, said, use, number):
    content = []
    if said.get("thinking") and (body.get("thinking") or {}).get("type") in ("enabled", "adaptive"):
        sign = hashlib.sha256(b"%d" % number).hexdigest()
        content.append({"type": "thinking", "thinking": said["thinking"], "signature": "bGFi" + sign + "=="})
    else:
        use["reasoning"] = 0
    if said["text"]:
        content.append({"type": "text", "text": said["text"]})
    content += [{"type": "tool_use", "id": i, "name": t, "input": a} for i, t, a, _ in said["calls"]]
    usage = {"input_tokens": max(1, use["whole"] - use["read"] - use["write"]), "output_tokens": use["out"],
             "cache_read_input_tokens": use["read"], "cache_creation_input_tokens": use["write"],
             "cache_creation": {"ephemeral_5m_input_tokens": use["write"] - use["long"], "ephemeral_1h_input_tokens": use["long"]},
             "output_tokens_details": {"thinking_tokens": use["reasoning"]},
             "service_tier": "standard"}
    whole = {"id": "msg_lab%04d" % number, "type": "message", "role": "assistant", "model": body["model"],
             "content": content, "stop_reason": "tool_use" if said["calls"] else "end_turn", "stop_sequence": None,
             "usage": usage}
    if not body.get("stream"):
        return whole, None
    events = [{"type": "message_start", "message": dict(whole, content=[], stop_reason=None)}]
    for index, block in enumerate(content):
        if block["type"] == "text":
            start, deltas = {"type": "text", "text": ""}, [{"type": "text_delta", "text": block["text"]}]
        elif block["type"] == "thinking":
            start = {"type": "thinking", "thinking": "", "signature": ""}
            deltas = [{"type": "thinking_delta", "thinking": block["thinking"]},
                      {"type": "signature_delta", "signature": block["signature"]}]
        else:
            start, deltas = dict(block, input={}), [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
        events.append({"type": "content_block_start", "index": index, "content_block": start})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    events.append({"type": "message_delta", "delta": {"stop_reason": whole["stop_reason"], "stop_sequence": None}, "usage": usage})
    return whole, events + [{"type": "message_stop"}]


def responses(body, said, use, number):
    items = []
    if said.get("thinking"):
        items.append({"type": "reasoning", "id": "rs_lab%04d" % number, "summary": [{"type": "summary_text", "text": said["thinking"]}],
                      "encrypted_content": "c2VhbGVk%04d" % number})
    if said["text"]:
        items.append({"type": "message", "id": "msg_lab%04d" % number, "role": "assistant", "status": "completed",
                      "content": [{"type": "output_text", "text": said["text"], "annotations": []}]})
    for place_, (call, tool, arguments, namespace) in enumerate(said["calls"]):
        item = {"id": "fc_lab%04d%d" % (number, place_), "call_id": call, "status": "completed"}
        if tool == "tool_search":
            item.update(type="tool_search_call", execution="client", arguments=arguments)
        elif isinstance(arguments, str):
            item.update(type="custom_tool_call", name=tool, input=arguments)
        else:
            item.update(type="function_call", name=tool, arguments=json.dumps(arguments))
        if namespace:
            item["namespace"] = namespace
        items.append(item)
    usage = {"input_tokens": use["whole"], "input_tokens_details": {"cached_tokens": use["read"]}, "output_tokens": use["out"],
             "output_tokens_details": {"reasoning_tokens": use["reasoning"]}, "total_tokens": use["whole"] + use["out"]}
    whole = {"id": "resp_lab%04d" % number, "object": "response", "created_at": 1790000000, "status": "completed",
             "model": body.get("model"), "output": items, "usage": usage}
    if not body.get("stream"):
        return whole, None
    events = [{"type": "response.created", "response": dict(whole, status="in_progress", output=[], usage=None)}]
    for index, item in enumerate(items):
        events.append({"type": "response.output_item.added", "output_index": index, "item": item})
        if item["type"] == "message":
            head = {"item_id": item["id"], "output_index": index, "content_index": 0}
            text = item["content"][0]["text"]
            events.append(dict(head, type="response.content_part.added", part={"type": "output_text", "text": "", "annotations": []}))
            events.append(dict(head, type="response.output_text.delta", delta=text))
            events.append(dict(head, type="response.output_text.done", text=text))
        if item["type"] == "reasoning":
            head = {"item_id": item["id"], "output_index": index, "summary_index": 0}
            text = item["summary"][0]["text"]
            events.append(dict(head, type="response.reasoning_summary_part.added", part={"type": "summary_text", "text": ""}))
            events.append(dict(head, type="response.reasoning_summary_text.delta", delta=text))
            events.append(dict(head, type="response.reasoning_summary_text.done", text=text))
        if item["type"] == "function_call":
            head = {"item_id": item["id"], "output_index": index}
            events.append(dict(head, type="response.function_call_arguments.delta", delta=item["arguments"]))
            events.append(dict(head, type="response.function_call_arguments.done", arguments=item["arguments"]))
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    events.append({"type": "response.completed", "response": whole})
    return whole, [dict(event, sequence_number=at) for at, event in enumerate(events)]


def chat(body, said, use, number):
    message = {"role": "assistant", "content": said["text"]}
    if said.get("thinking"):
        message["reasoning_content"] = said["thinking"]
    if said["calls"]:
        message["tool_calls"] = [{"id": i, "type": "function", "function": {"name": t, "arguments": json.dumps(a)}}
                                 for i, t, a, _ in said["calls"]]
    stop = "tool_calls" if said["calls"] else "stop"
    usage = {"prompt_tokens": use["whole"], "completion_tokens": use["out"], "total_tokens": use["whole"] + use["out"],
             "prompt_tokens_details": {"cached_tokens": use["read"]}}
    head = {"id": "chatcmpl-lab%04d" % number, "created": 1790000000, "model": body.get("model")}
    whole = dict(head, object="chat.completion", usage=usage, choices=[{"index": 0, "message": message, "finish_reason": stop}])
    if not body.get("stream"):
        return whole, None
    deltas = [{"role": "assistant", "content": ""}]
    deltas += [{name: message[name]} for name in ("reasoning_content", "content") if message.get(name)]
    deltas += [{"tool_calls": [dict(call, index=at)]} for at, call in enumerate(message.get("tool_calls") or [])]
    head["object"] = "chat.completion.chunk"
    events = [dict(head, choices=[{"index": 0, "delta": delta, "finish_reason": None}]) for delta in deltas]
    events.append(dict(head, choices=[{"index": 0, "delta": {}, "finish_reason": stop}]))
    return whole, events + [dict(head, choices=[], usage=usage), "[DONE]"]


def gemini(body, said, use, number):
    parts = []
    if said.get("thinking"):
        parts.append({"text": said["thinking"], "thought": True})
    if said["text"]:
        parts.append({"text": said["text"]})
    for place_, (_, tool, arguments, _) in enumerate(said["calls"]):
        part = {"functionCall": {"name": tool, "args": arguments}}
        if place_ == 0 and said.get("thinking"):
            part["thoughtSignature"] = "c2lnbmVk%04d" % number
        parts.append(part)
    usage = {"promptTokenCount": use["whole"], "cachedContentTokenCount": use["read"], "candidatesTokenCount": use["out"],
             "thoughtsTokenCount": use["reasoning"], "totalTokenCount": use["whole"] + use["out"] + use["reasoning"]}
    head = {"responseId": "lab%04d" % number, "modelVersion": "lab", "usageMetadata": usage}

    def candidate(parts, last):
        content = {"role": "model", "parts": parts}
        return dict(head, candidates=[dict({"index": 0, "content": content}, **({"finishReason": "STOP"} if last else {}))])

    return candidate(parts, True), [candidate([part], at + 1 == len(parts)) for at, part in enumerate(parts)]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def body(self):
        if "chunked" not in self.headers.get("Transfer-Encoding", "").lower():
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        whole = b""
        while True:
            size = int(self.rfile.readline().split(b";")[0] or b"0", 16)
            whole += self.rfile.read(size)
            self.rfile.readline()
            if size == 0:
                return whole

    def do_GET(self):
        if self.headers.get("Upgrade"):  # No websockets here: a client shall ask again without.
            return self.send({"error": {"message": "upgrade required"}}, 426)
        self.send({"object": "list", "data": [{"id": "lab", "object": "model"}], "models": []})

    def do_HEAD(self):
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_POST(self):
        raw = self.body()
        path = self.path.split("?")[0]
        apis = {"/messages": anthropic, "/responses": responses, "/chat/completions": chat,
                ":streamGenerateContent": gemini, ":generateContent": gemini}
        made = next((api for end, api in apis.items() if path.endswith(end)), None)
        if self.headers.get("Content-Encoding") == "gzip":
            import gzip
            raw = gzip.decompress(raw)
        elif self.headers.get("Content-Encoding") == "zstd":
            import subprocess
            raw = subprocess.run(["zstd", "-dc"], input=raw, capture_output=True, check=True).stdout
        if made is None:
            return self.send({"input_tokens": len(raw) // 4, "totalTokens": len(raw) // 4})
        stage, api = self.server.stage, made.__name__
        number = stage.number()
        body = json.loads(raw)
        thread = (body.get("thread") or {}).get("type")
        sent = raw
        if thread == "continue":
            told = stage.threads.get(body["thread"]["previous_message_id"])
            if told is None:
                return self.refuse("thread_not_found")
            body = dict(body, **dict(told, messages=told["messages"] + body["messages"]))
            sent = json.dumps(body).encode()
        said = stage.answer(api, body)
        use = stage.usage(sent, json.dumps([said["text"], said["calls"]]))
        use["whole"] = said.get("whole") or use["whole"]
        use["reasoning"] = 7 if said.get("thinking") else 0
        whole, events = made(body, said, use, number)
        if thread in ("create", "continue"):
            reply = {"role": "assistant", "content": whole["content"]}
            kept = {name: body[name] for name in ("system", "tools") if name in body}
            stage.threads[whole["id"]] = dict(kept, messages=body["messages"] + [reply])
        if thread == "continue":
            self.put(number, "whole", sent)
        self.keep(number, raw, {"path": self.path, "api": api, "kind": said["kind"], "at": said.get("at"), "usage": use,
                                "model": body.get("model") or path.rsplit("/", 1)[-1].split(":")[0],
                                "headers": dict(self.headers.items())})
        wants = body.get("stream") or path.endswith(":streamGenerateContent")
        if not wants:
            self.put(number, "answer", json.dumps(whole).encode())
            return self.send(whole)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.send_header("request-id", "req_lab%04d" % number)
        self.end_headers()
        written = b""
        for event in events:
            named = "event: %s\n" % event["type"] if api in ("anthropic", "responses") else ""
            piece = (named + "data: " + (event if isinstance(event, str) else json.dumps(event)) + "\n\n").encode()
            written += piece
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.wfile.write(b"0\r\n\r\n")
        self.put(number, "answer", written)

    def keep(self, number, raw, meta):
        self.put(number, "body", raw)
        self.put(number, "json", json.dumps(meta, indent=1).encode())

    def put(self, number, ending, raw):
        with open(os.path.join(self.server.stage.log, "%04d.%s" % (number, ending)), "wb") as file:
            file.write(raw)

    def refuse(self, code):
        self.send({"type": "error", "error": {"type": "not_found_error", "message": code, "details": {"error_code": code}}}, 404)

    def send(self, value, status=200):
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


class Server(ThreadingHTTPServer):
    daemon_threads = True


def main():
    parser = argparse.ArgumentParser(description="A provider that plays a script.")
    parser.add_argument("--host", required=True)
    parser.add_argument("--plays", required=True)
    parser.add_argument("--project", required=True)
    parser.add_argument("--log", required=True)
    server = Server(("127.0.0.1", 0), Handler)
    server.stage = Stage(parser.parse_args())
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    sys.exit(main())
