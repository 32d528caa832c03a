#!/usr/bin/env python3
"""Counts records, calls, results and tokens of recordings by other means than the importers, and compares them with an import.

    count_recordings.py PROGRAM FOLDER

Each file below FOLDER that is a recording is imported into a store of its own. Only the Python standard library is used, and
`zstd` for packed files. Prints a line for each difference, and the sums; the exit code is 1 if anything differs, and 2 if nothing was counted.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

KINDS = ("input", "cache_read", "cache_write", "output")


class Count:
    """What one file holds."""

    def __init__(self):
        self.records = 0
        self.calls = set()
        self.results = set()
        self.tokens = Counter()

    def paid(self, given, read, written, output):
        for kind, count in zip(KINDS, (given, read, written, output)):
            self.tokens[kind] += count or 0


def values(text):
    """The JSON values of a text, one after the other; pieces that are none are left out."""
    decoder, at = json.JSONDecoder(strict=False), 0
    while True:
        while at < len(text) and text[at] in " \t\r\n\ufeff":
            at += 1
        if at >= len(text):
            return
        try:
            value, at = decoder.raw_decode(text, at)
            yield value
        except ValueError:
            line = text.find("\n", at)
            if line < 0:
                return
            at = line + 1


def blocks(message):
    content = message.get("content")
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def claude(records):
    """Only what stands in the file itself; answers of subagents inside progress records are requests of the file, too."""
    count, answers, told, sums = Count(), {}, set(), {}
    results = Counter()
    for record in records:
        count.records += 1
        if not isinstance(record, dict):
            continue
        # The host's own sum, which holds requests that have no record.
        for model, used in (record.get("modelUsage") or {}).items() if record.get("type") == "cost-state" else ():
            names = ("inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens", "outputTokens")
            sums[model.split("[")[0]] = Counter({kind: used.get(name) or 0 for kind, name in zip(KINDS, names)})
        speakers = [(record, bool(record.get("isSidechain")))]
        data = record.get("data")
        if isinstance(data, dict) and data.get("type") == "agent_progress" and isinstance(data.get("message"), dict):
            speakers.append((data["message"], True))
        for speaker, is_side in speakers:
            own = speaker.get("uuid")
            if own in told:
                continue
            told.add(own)
            message = speaker.get("message")
            if not isinstance(message, dict):
                continue
            # A host that folds a session writes its calls and results again, in the name of no model.
            is_again = message.get("model") == "<synthetic>"
            for block in blocks(message):
                if block.get("type") == "tool_use" and not is_again:
                    count.calls.add((own, block["id"]))
                elif block.get("type") == "tool_result":
                    results[block["tool_use_id"]] += 1
            usage, model = message.get("usage"), (message.get("model") or "").split("[")[0]
            if speaker.get("type") == "assistant" and usage and message.get("model") != "<synthetic>":
                of = answers.setdefault((model, message.get("id") or own), Counter())
                parts = usage.get("iterations") or []
                parts = parts if len(parts) > 1 else [usage]
                new = Counter()
                for part in parts:
                    new["input"] += part.get("input_tokens") or 0
                    new["cache_read"] += part.get("cache_read_input_tokens") or 0
                    new["cache_write"] += part.get("cache_creation_input_tokens") or 0
                    new["output"] += part.get("output_tokens") or 0
                for kind in KINDS:
                    of[kind] = max(of[kind], new[kind])
    # An id may be used again, and a fold writes results again: an id has no more answers than calls.
    calls = Counter(call for _, call in count.calls)
    count.results = {(call, n) for call, many in results.items() for n in range(min(many, calls[call]))}
    by_model = {}
    for (model, _), of in answers.items():
        by_model.setdefault(model, Counter()).update(of)
    for model, used in sums.items():
        of = by_model.setdefault(model, Counter())
        for kind in KINDS:
            of[kind] = max(of[kind], used[kind])
    for of in by_model.values():
        count.tokens.update(of)
    return count


def opencode(documents):
    count = Count()
    for document in documents:
        for message in document["messages"]:
            count.records += 1 + len(message["parts"])
            for place, part in enumerate(message["parts"]):
                state = part.get("state") or {}
                if part.get("type") == "tool" and state.get("status") != "pending":
                    name = (message["info"]["id"], place)
                    count.calls.add(name)
                    if state.get("status") in ("completed", "error"):
                        count.results.add(name)
            info, tokens = message["info"], message["info"].get("tokens")
            if tokens and (info.get("time", {}).get("completed") or info.get("error")):
                cache = tokens.get("cache") or {}
                output = (tokens.get("output") or 0) + (tokens.get("reasoning") or 0)
                count.paid(tokens.get("input"), cache.get("read"), cache.get("write"), output)
    return count


def codex(records):
    count, total, is_step, has_records = Count(), None, False, False
    open_calls, number = Counter(), Counter()
    was_made = False
    for record in records:
        count.records += 1
        payload = record.get("payload") or {}
        kind = payload.get("type", "")
        usage = None
        if record.get("type") == "response_item":
            made = kind == "reasoning" or kind.endswith("_call")
            made = made or kind == "message" and payload.get("role") == "assistant"
            is_step = is_step or made and not was_made
            was_made = made
            call = payload.get("call_id")
            if kind.endswith("_call") and call:
                number[call] += 1
                open_calls[call] += 1
                count.calls.add((call, number[call]))
            elif kind.endswith("_output") and call:
                count.results.add((call, number[call]))
        elif record.get("type") == "token_usage_record":
            has_records, usage = True, payload.get("usage")
        elif kind == "token_count":
            info = payload.get("info") or {}
            last, new = info.get("last_token_usage"), info.get("total_token_usage")
            moved = new is not None and total is not None and new != total
            if is_step and last:
                usage = last
            elif moved and not is_step and not has_records:
                usage = {name: new[name] - total.get(name, 0) for name in new if isinstance(new[name], int)}
                is_step = True
            total = new or total
        elif kind in ("user_message", "turn_aborted", "thread_rolled_back") or record.get("type") == "compacted":
            was_made = False
        elif kind == "item_completed" and "user" in str((payload.get("item") or {}).get("type")).lower():
            was_made = False
        if usage and is_step:
            is_step = False
            read, written = usage.get("cached_input_tokens") or 0, usage.get("cache_write_input_tokens") or 0
            count.paid(max((usage.get("input_tokens") or 0) - read - written, 0), read, written, usage.get("output_tokens"))
    return count


def gemini_document(document):
    count = Count()
    for message in document["messages"]:
        count.records += 1
        for call in message.get("toolCalls") or []:
            name = (message["id"], call.get("id"))
            count.calls.add(name)
            if call.get("result") is not None or call.get("status") in ("success", "error", "cancelled"):
                count.results.add(name)
        tokens = message.get("tokens")
        if tokens:
            read = tokens.get("cached") or 0
            output = (tokens.get("output") or 0) + (tokens.get("thoughts") or 0)
            count.paid(max((tokens.get("input") or 0) - read, 0), read, 0, output)
    return count


def copilot(records):
    count, told, output = Count(), 0, {}
    sums = Counter()
    for record in records:
        count.records += 1
        kind, data = record.get("type"), record.get("data") or {}
        if kind == "tool.execution_start":
            count.calls.add((record.get("id"), data.get("toolCallId")))
        elif kind == "tool.execution_complete":
            count.results.add((record.get("id"), data.get("toolCallId")))
        elif kind == "assistant.message":
            told += data.get("outputTokens") or 0
        elif kind == "session.shutdown":
            for metric in (data.get("modelMetrics") or {}).values():
                usage = metric.get("usage") or {}
                read, written = usage.get("cacheReadTokens") or 0, usage.get("cacheWriteTokens") or 0
                sums["input"] += max((usage.get("inputTokens") or 0) - read - written, 0)
                sums["cache_read"] += read
                sums["cache_write"] += written
                output[record.get("id")] = output.get(record.get("id"), 0) + (usage.get("outputTokens") or 0)
    count.tokens.update(sums)
    count.tokens["output"] = max(told, sum(output.values()))
    return count


def runs(document):
    count = Count()
    for run in document:
        for place, message in enumerate(run.get("traj") or []):
            count.records += 1
            for number, _ in enumerate(message.get("tool_calls") or []):
                count.calls.add((run["task_id"], run["trial"], place, number))
            if message.get("role") == "tool":
                count.results.add((run["task_id"], run["trial"], place))
    return count


def trajectory(document):
    count = Count()
    for place, _ in enumerate(document["trajectory"]):
        count.records += 1
        count.calls.add(place)
        count.results.add(place)
    return count


def memory(records):
    """Decisions and preferences: what is to be remembered, a record a line."""
    count = Count()
    count.records = len(records)
    return count


def count_of(path):
    """The count of a file; None if it is no recording that is counted here."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    if path.suffix == ".zst":
        data = subprocess.run(["zstd", "-dcq", str(path)], capture_output=True, check=True).stdout
    text = data.decode("utf-8", errors="replace")
    found = list(values(text))
    if not found:
        return None
    firsts = [value for value in found[:40] if isinstance(value, dict)]
    has = lambda *names: any(all(name in value for name in names) for value in firsts)
    if path.suffix == ".traj" and has("trajectory"):
        return trajectory(found[0])
    if isinstance(found[0], list):
        return runs(found[0]) if found[0] and "traj" in found[0][0] else None
    if has("replaces") or has("ts", "key"):
        return memory(found)
    if has("info", "messages"):
        return opencode(found)
    if has("sessionId", "messages") and len(found) == 1:
        return gemini_document(found[0])
    if has("type", "payload", "timestamp"):
        return codex(found)
    if has("type", "data", "parentId"):
        return copilot(found)
    if has("type", "sessionId", "uuid") and ".jsonl" in path.suffixes and not has("$set"):
        return claude(found)
    return None


def imported(program, path):
    """The same numbers, as the program tells them of a store with this file alone."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "HOME": folder, "ACPDB_ANY_FILE_SYSTEM": "1", "TZ": "UTC"}
        environment.pop("ACPDB_PATH", None)

        def run(*words):
            command = [program, "--db", folder + "/store", *words, "--json", "-q"]
            told = subprocess.run(command, env=environment, capture_output=True, check=False)
            return json.loads(told.stdout or b"{}")

        items = run("import", "--memory", str(path)).get("items") or []
        tokens = (run("cost").get("sum") or {}).get("tokens") or {}
    total = lambda name: sum(item[name] for item in items)
    counts = {
        "records": total("records"),
        "calls": total("calls") + total("calls_subagent"),
        "open": total("without_result"),
        "input": tokens.get("input", 0),
        "cache_read": tokens.get("cache_read", 0),
        "cache_write": tokens.get("cache_write", 0) + tokens.get("cache_write_long", 0),
        "output": tokens.get("output", 0),
    }
    return counts


def main():
    program, folder = sys.argv[1:3]
    sums, differences, files = Counter(), 0, 0
    for path in sorted(Path(folder).rglob("*")):
        if not path.is_file() or path.suffix not in (".jsonl", ".json", ".traj", ".zst"):
            continue
        if path.suffix == ".zst" and not shutil.which("zstd"):
            print(f"{path}: not counted, for zstd is not here")
            continue
        count = count_of(path)
        if count is None or "requests" in path.name:
            continue
        files += 1
        own = {"records": count.records, "calls": len(count.calls), **{kind: count.tokens[kind] for kind in KINDS}}
        told = imported(program, path)
        # The program counts open calls of the main session alone.
        answered = told["calls"] - told["open"]
        for name, number in own.items():
            sums[name] += number
            if told[name] != number:
                differences += 1
                print(f"{path}: {name}: counted {number}, imported {told[name]}")
        if len(count.results) != answered:
            differences += 1
            print(f"{path}: results: counted {len(count.results)}, imported {answered}")
        sums["results"] += len(count.results)
    print(f"{files} files: " + ", ".join(f"{number} {name}" for name, number in sorted(sums.items())))
    return 2 if files == 0 else int(differences > 0)


if __name__ == "__main__":
    sys.exit(main())
