#!/usr/bin/env python3
"""Writes demo-session.jsonl, the session that `acpdb demo` shows when it finds none of the user's own.

Everything in that file is invented: the people, the paths, the service (`/home/dev/shop-api`), the outputs, the ids
and the signatures. The story is an ordinary day: an agent paginates an endpoint, hunts a flaky test, is compacted in
the middle and goes on. It is told so that each supersede rule has something to do: files are read and then edited,
searches and test runs are repeated, todo lists are rewritten, some calls fail.

    python3 cli/assets/make_demo_session.py             # rewrites demo-session.jsonl beside this script
    python3 cli/assets/make_demo_session.py --check     # says whether the committed file is what the script writes

Where a transcript of the host repeats in `toolUseResult` what the input or the result of the call says already (whole
files, old and new text), it is left out, to keep the file small.

Two parts: `Session` knows the record shapes of Claude Code's transcripts (one block a record, parents, one message id
a model step) and keeps the small project in memory, so that reads, searches and edits answer what they really would;
`story` is the tale. No clock, no random numbers: the same script gives the same bytes. Plain Python 3, no packages.
"""

import base64
import difflib
import fnmatch
import json
import pathlib
import re
import sys
import uuid
from datetime import datetime, timedelta, timezone

ROOT = "/home/dev/shop-api"
VERSION = "2.1.9"
MODEL = "claude-opus-4-5"
AGENT_MODEL = "claude-haiku-4-5"
NAMES = uuid.uuid5(uuid.NAMESPACE_URL, "https://shop-api.example/demo-session")
START = datetime(2026, 3, 12, 9, 2, 11, 408000, tzinfo=timezone.utc)


class Session:
    """Record by record, a transcript; and the files it talks about."""

    def __init__(self, files):
        self.files = dict(files)
        self.records = []
        self.id = str(uuid.uuid5(NAMES, "session"))
        self.now = START
        self.parent = None
        self.serial = {"uuid": 0, "toolu": 0, "msg": 0, "req": 0, "signature": 0}
        self.tokens = 14_200  # the fixed prefix: system prompt and tools
        self.fresh = 14_200  # tokens that no earlier request has sent
        self.todos = []
        self.prompt_uuid = None
        self.prompt_started = START
        self.backups = {}
        self.call_count = 0

    # --- ids, time, sizes --------------------------------------------------------------------------------------------

    def next_uuid(self):
        self.serial["uuid"] += 1
        return str(uuid.uuid5(NAMES, f"record {self.serial['uuid']}"))

    def next_id(self, kind):
        self.serial[kind] += 1
        return f"{kind}_01Demo{self.serial[kind]:04d}"

    def signature(self):
        self.serial["signature"] += 1
        text = f"demo signature {self.serial['signature']:03d}: invented, it signs nothing"
        return base64.b64encode(text.encode()).decode()

    def tick(self, milliseconds):
        # A little unevenness that is the same in every run.
        self.now += timedelta(milliseconds=milliseconds + 37 * (len(self.records) % 11))
        return stamp(self.now)

    def spend(self, text):
        count = max(1, len(text) // 4)
        self.tokens += count
        self.fresh += count

    # --- records -----------------------------------------------------------------------------------------------------

    def common(self, parent, **extra):
        record = {
            "parentUuid": parent,
            "isSidechain": False,
            "cwd": ROOT,
            "sessionId": self.id,
            "version": VERSION,
            "gitBranch": "paging",
        }
        record.update(extra)
        return record

    def put(self, record):
        self.records.append(record)
        if "uuid" in record:
            self.parent = record["uuid"]
        return record

    def prompt(self, text):
        """A message of the user, with the snapshot record that the host writes beside it."""
        if self.prompt_uuid is not None:
            self.end_of_prompt()
        self.tick(41_000)
        mark = self.next_uuid()
        self.records.append(self.snapshot(mark, mark, list(self.backups)[-3:], update=False))
        record = self.common(self.parent, type="user", message={"role": "user", "content": text}, uuid=mark)
        record["timestamp"] = self.tick(15)
        self.put(record)
        self.prompt_uuid = mark
        self.prompt_started = self.now
        self.spend(text)

    def end_of_prompt(self):
        took = int((self.now - self.prompt_started).total_seconds() * 1000)
        record = self.common(self.parent, type="system", subtype="turn_duration", durationMs=took)
        record.update(timestamp=self.tick(20), uuid=self.next_uuid(), isMeta=False)
        self.put(record)

    def snapshot(self, message, about, names, update):
        return {
            "type": "file-history-snapshot",
            "messageId": message,
            "snapshot": {
                "messageId": about,
                "trackedFileBackups": {name: self.backups[name] for name in names},
                "timestamp": stamp(self.now),
            },
            "isSnapshotUpdate": update,
        }

    def usage(self, output):
        written, self.fresh = self.fresh, 0
        return {
            "input_tokens": 3,
            "cache_creation_input_tokens": written,
            "cache_read_input_tokens": self.tokens - written,
            "output_tokens": output,
        }

    def step(self, *calls, think=None, say=None):
        """One reply of the model: its blocks, one record each, then the results in the order of the calls."""
        blocks = []
        if think:
            blocks.append({"type": "thinking", "thinking": think, "signature": self.signature()})
        if say:
            blocks.append({"type": "text", "text": say})
        asked = []
        for call in calls:
            use = {"type": "tool_use", "id": self.next_id("toolu"), "name": call["name"], "input": call["input"]}
            blocks.append(use)
            asked.append((call, use))
        message, request = self.next_id("msg"), self.next_id("req")
        written = sum(len(json.dumps(block)) for block in blocks)
        usage = self.usage(written // 4)
        records = {}
        for place, block in enumerate(blocks):
            last = place + 1 == len(blocks)
            body = {
                "model": MODEL,
                "id": message,
                "role": "assistant",
                "content": [block],
                "stop_reason": ("tool_use" if calls else "end_turn") if last and place % 3 == 2 else None,
                "usage": usage,
            }
            record = self.common(self.parent, message=body, requestId=request, type="assistant", uuid=self.next_uuid())
            record["timestamp"] = self.tick(1_900 + 6 * min(len(json.dumps(block)), 900))
            self.put(record)
            if block["type"] == "tool_use":
                records[block["id"]] = record["uuid"]
            self.spend(json.dumps(block))
        for call, use in asked:
            self.result(call, use, records[use["id"]])

    def result(self, call, use, asker):
        self.call_count += 1
        parent = asker
        if call.get("progress"):
            parent = call["progress"](self, use, asker)
        text, details, failed, extra = call["run"](self)
        if failed != call["fails"]:
            raise SystemExit(f"{call['name']} {call['input']}: expected fails={call['fails']}, got: {text[:200]}")
        block = {"tool_use_id": use["id"], "type": "tool_result", "content": text}
        if failed or call["name"] == "Bash":
            block["is_error"] = failed
        record = self.common(parent, type="user", message={"role": "user", "content": [block]}, uuid=self.next_uuid())
        record["timestamp"] = self.tick(call["takes"])
        record["toolUseResult"] = details
        self.put(record)
        self.spend(text if isinstance(text, str) else json.dumps(text))
        if extra and len(self.backups) <= 4:  # a few show the shape
            self.records.append(self.snapshot(asker, self.prompt_uuid, [extra], update=True))

    def backup(self, path):
        """Notes, as the host does, that it keeps the old state of a file. Its name, if that is news."""
        name = relative(path)
        if name in self.backups:
            return None
        kept = name.replace("/", "-") + "@v1" if path in self.files else None
        self.backups[name] = {"backupFileName": kept, "version": 1, "backupTime": stamp(self.now)}
        return name

    def compact(self, summary):
        """The host replaces the conversation by a summary: a boundary record, then the summary as a user record."""
        last = self.parent
        self.tick(48_000)
        mark = self.next_uuid()
        record = self.common(None, logicalParentUuid=last, type="system", subtype="compact_boundary")
        record.update(
            content="Conversation compacted",
            isMeta=False,
            timestamp=stamp(self.now),
            uuid=mark,
            level="info",
            compactMetadata={"trigger": "manual", "preTokens": self.tokens},
        )
        self.put(record)
        record = self.common(mark, type="user", message={"role": "user", "content": summary})
        record.update(
            isVisibleInTranscriptOnly=True, isCompactSummary=True, uuid=self.next_uuid(), timestamp=stamp(self.now)
        )
        self.put(record)
        self.tokens = self.fresh = 14_200
        self.spend(summary)


def stamp(time):
    return time.strftime("%Y-%m-%dT%H:%M:%S.") + f"{time.microsecond // 1000:03d}Z"


def absolute(path):
    return f"{ROOT}/{path}"


def relative(path):
    return path.removeprefix(ROOT + "/")


# --- tools: each gives {name, input, run, fails, takes}; `run` answers (text, details, failed, new backup) -------------


def tool(name, arguments, run, fails=False, takes=60, **more):
    return {"name": name, "input": arguments, "run": run, "fails": fails, "takes": takes, **more}


def failure(message):
    return f"<tool_use_error>{message}</tool_use_error>", f"Error: {message}", True, False


def read(path, offset=None, limit=None, fails=False):
    arguments = {"file_path": absolute(path)}
    if offset is not None:
        arguments.update(offset=offset, limit=limit)

    def run(session):
        if absolute(path) not in session.files:
            return failure("File does not exist.")
        lines = session.files[absolute(path)].splitlines()
        first = offset or 1
        shown = lines[first - 1 : first - 1 + limit] if limit else lines
        text = "\n".join(f"{first + place:>6}\u2192{line}" for place, line in enumerate(shown))
        details = {
            "type": "text",
            "file": {
                "filePath": absolute(path),
                "numLines": len(shown),
                "startLine": first,
                "totalLines": len(lines),
            },
        }
        return text, details, False, False

    return tool("Read", arguments, run, fails)


def hunks(old, new):
    found = []
    matcher = difflib.SequenceMatcher(None, old.splitlines(), new.splitlines(), autojunk=False)
    for group in matcher.get_grouped_opcodes(0):
        lines = []
        for kind, a, b, c, d in group:
            if kind == "equal":
                lines += [" " + line for line in old.splitlines()[a:b]]
            else:
                lines += ["-" + line for line in old.splitlines()[a:b]]
                lines += ["+" + line for line in new.splitlines()[c:d]]
        first, last = group[0], group[-1]
        found.append(
            {
                "oldStart": first[1] + 1,
                "oldLines": last[2] - first[1],
                "newStart": first[3] + 1,
                "newLines": last[4] - first[3],
                "lines": lines,
            }
        )
    return found


def edit(path, old, new, fails=False):
    arguments = {"file_path": absolute(path), "old_string": old, "new_string": new}

    def run(session):
        before = session.files.get(absolute(path), "")
        if before.count(old) != 1:
            return failure(f"String to replace not found in file.\nString: {old}")
        news = session.backup(absolute(path))
        after = before.replace(old, new)
        session.files[absolute(path)] = after
        details = {
            "filePath": absolute(path),
            "structuredPatch": hunks(before, after),
            "userModified": False,
        }
        return f"The file {absolute(path)} has been updated successfully.", details, False, news

    return tool("Edit", arguments, run, fails)


def write(path, content):
    def run(session):
        before = session.files.get(absolute(path))
        news = session.backup(absolute(path))
        session.files[absolute(path)] = content
        kind, verb = ("create", "created") if before is None else ("update", "updated")
        details = {
            "type": kind,
            "filePath": absolute(path),
            "structuredPatch": [] if before is None else hunks(before, content),
        }
        return f"File {verb} successfully at: {absolute(path)}", details, False, news

    return tool("Write", {"file_path": absolute(path), "content": content}, run)


def matching(session, pattern, folder, glob):
    for path in sorted(session.files):
        name = relative(path)
        if folder and not name.startswith(folder):
            continue
        if glob and not fnmatch.fnmatch(name.rsplit("/", 1)[-1], glob):
            continue
        for number, line in enumerate(session.files[path].splitlines(), 1):
            if re.search(pattern, line):
                yield name, number, line


def grep(pattern, folder=None, glob=None, mode="content"):
    arguments = {"pattern": pattern}
    if folder:
        arguments["path"] = absolute(folder)
    if glob:
        arguments["glob"] = glob
    arguments["output_mode"] = mode
    if mode == "content":
        arguments["-n"] = True

    def run(session):
        hits = list(matching(session, pattern, folder, glob))
        if mode == "content":
            content = "\n".join(f"{name}:{number}:{line}" for name, number, line in hits)
            details = {"mode": mode, "numFiles": 0, "filenames": [], "numLines": len(hits)}
            return content or "No matches found", details, False, False
        names = sorted({name for name, _, _ in hits})
        text = f"Found {len(names)} files\n" + "\n".join(names) if names else "No files found"
        return text, {"mode": mode, "filenames": names, "numFiles": len(names)}, False, False

    return tool("Grep", arguments, run, takes=110)


def glob(pattern):
    def run(session):
        flat = pattern.replace("**/", "*")
        names = sorted(path for path in session.files if fnmatch.fnmatch(relative(path), flat))
        details = {"filenames": names, "durationMs": 14, "numFiles": len(names), "truncated": False}
        return "\n".join(names) or "No files found", details, False, False

    return tool("Glob", {"pattern": pattern}, run)


def bash(command, description, output, code=0, takes=2_600, progress=None):
    def run(_session):
        if code:
            text = f"Exit code {code}\n{output}"
            return text, f"Error: {text}", True, False
        details = {"stdout": output, "stderr": "", "interrupted": False, "isImage": False}
        return output, details, False, False

    more = {}
    if progress:

        def show(session, use, asker):
            record = session.common(asker, type="progress")
            data = {"type": "bash_progress", "output": progress, "fullOutput": progress}
            data.update(elapsedTimeSeconds=2, totalLines=progress.count("\n") + 1, timeoutMs=120_000)
            record.update(data=data, toolUseID="bash-progress-0", parentToolUseID=use["id"])
            record.update(uuid=session.next_uuid(), timestamp=session.tick(2_050))
            session.put(record)
            return record["uuid"]

        more["progress"] = show
    return tool("Bash", {"command": command, "description": description}, run, bool(code), takes, **more)


def todo(*items):
    """Items as "x text | doing text": x done, > in progress, - pending."""
    marks = {"x": "completed", ">": "in_progress", "-": "pending"}
    todos = []
    for item in items:
        content, active = item[2:].split(" | ")
        todos.append({"content": content, "status": marks[item[0]], "activeForm": active})

    def run(session):
        details = {"oldTodos": session.todos, "newTodos": todos}
        session.todos = todos
        return "Todos have been modified successfully.", details, False, False

    return tool("TodoWrite", {"todos": todos}, run, takes=25)


def task(description, prompt, steps, answer):
    """A subagent. Its own records are nested in `progress` records of the parent's transcript."""
    agent = "a7d3e51"
    total = {"calls": 0}

    def show(session, use, asker):
        parent = asker
        carrier = "agent_" + f"msg_01Demo{session.serial['msg']:04d}"

        def nest(inner):
            nonlocal parent
            inner = {**inner, "uuid": session.next_uuid(), "timestamp": session.tick(900)}
            record = session.common(parent, type="progress")
            data = {"message": inner, "normalizedMessages": [], "type": "agent_progress", "prompt": prompt}
            data["agentId"] = agent
            record.update(data=data, toolUseID=carrier, parentToolUseID=use["id"], uuid=session.next_uuid())
            record["timestamp"] = session.tick(3)
            session.put(record)
            parent = record["uuid"]

        def reply(block, message, request):
            body = {"model": AGENT_MODEL, "id": message, "role": "assistant", "content": [block]}
            body.update(stop_reason=None)
            body["usage"] = {
                "input_tokens": 3,
                "cache_creation_input_tokens": 640,
                "cache_read_input_tokens": 9_300,
                "output_tokens": len(json.dumps(block)) // 4,
            }
            nest({"type": "assistant", "message": body, "requestId": request})

        nest({"type": "user", "message": {"role": "user", "content": [{"type": "text", "text": prompt}]}})
        for call in steps:
            inner = {"type": "tool_use", "id": session.next_id("toolu"), "name": call["name"], "input": call["input"]}
            reply(inner, session.next_id("msg"), session.next_id("req"))
            text, _, failed, _ = call["run"](session)
            block = {"tool_use_id": inner["id"], "type": "tool_result", "content": text}
            if failed:
                block["is_error"] = True
            nest({"type": "user", "message": {"role": "user", "content": [block]}})
            total["calls"] += 1
        return parent

    def run(_session):
        content = [{"type": "text", "text": answer}]
        details = {"status": "completed", "prompt": prompt, "agentId": agent, "content": content}
        details.update(totalDurationMs=21_430, totalTokens=11_820, totalToolUseCount=total["calls"])
        return content, details, False, False

    arguments = {"description": description, "subagent_type": "Explore", "prompt": prompt}
    return tool("Task", arguments, run, takes=1_400, progress=show)


# --- outputs of the project's own commands -----------------------------------------------------------------------------


def suite(runner, files, failures=(), took="1.04s"):
    """What the test runner prints. `files` are (name, count, ms); `failures` are (file, name, message lines)."""
    lines = [f"> shop-api@1.14.2 test {ROOT}", "> vitest run", "", f" RUN  v2.1.8 {ROOT}", ""]
    if runner == "direct":
        lines = lines[3:]
    failed_files = {file for file, _, _ in failures}
    for name, count, took_ms in files:
        bad = sum(1 for file, _, _ in failures if file == name)
        lines.append(f" {'❯' if bad else '✓'} {name} ({count} tests{f' | {bad} failed' if bad else ''}) {took_ms}ms")
    if failures:
        lines += ["", f"⎯⎯⎯⎯⎯⎯⎯ Failed Tests {len(failures)} ⎯⎯⎯⎯⎯⎯⎯", ""]
        for file, name, message in failures:
            lines += [f" FAIL  {file} > {name}", *message, ""]
    total = sum(count for _, count, _ in files)
    good_files, good = len(files) - len(failed_files), total - len(failures)
    bad_files_note = f"{len(failed_files)} failed | " if failures else ""
    bad_note = f"{len(failures)} failed | " if failures else ""
    lines.append(f" Test Files  {bad_files_note}{good_files} passed ({len(files)})")
    lines.append(f"      Tests  {bad_note}{good} passed ({total})")
    lines.append(f"   Duration  {took}")
    return "\n".join(lines)


def npm_test(output, **more):
    return bash("npm test", "Run the test suite", output, takes=3_400, **more)


def pnpm_test(output, **more):
    return bash("pnpm test", "Run the test suite", output, takes=3_300, **more)


TYPECHECK = f"> shop-api@1.14.2 typecheck {ROOT}\n> tsc --noEmit"


# --- the project before the session ------------------------------------------------------------------------------------

FILES = {
    "src/server.ts": """\
import Fastify from "fastify";
import { openDb } from "./db/pool.js";
import { couponRoutes } from "./coupons/routes.js";
import { orderRoutes } from "./orders/routes.js";

export function buildServer(path = process.env.SHOP_DB ?? "shop.db") {
  const app = Fastify({ logger: process.env.NODE_ENV !== "test" });
  const db = openDb(path);
  app.register(orderRoutes, { db });
  app.register(couponRoutes, { db });
  return app;
}
""",
    "src/db/pool.ts": """\
import Database from "better-sqlite3";

export interface Db {
  all<T>(sql: string, params: unknown[]): T[];
  get<T>(sql: string, params: unknown[]): T | undefined;
  run(sql: string, params: unknown[]): void;
}

export function openDb(path: string): Db {
  const raw = new Database(path);
  raw.pragma("journal_mode = WAL");
  return {
    all: (sql, params) => raw.prepare(sql).all(...params) as never,
    get: (sql, params) => raw.prepare(sql).get(...params) as never,
    run: (sql, params) => void raw.prepare(sql).run(...params),
  };
}
""",
    "src/orders/types.ts": """\
export type OrderStatus = "open" | "paid" | "shipped" | "cancelled";

export interface Order {
  id: string;
  customerId: string;
  status: OrderStatus;
  totalCents: number;
  createdAt: string;
}
""",
    "src/orders/repo.ts": """\
import type { Db } from "../db/pool.js";
import type { Order, OrderStatus } from "./types.js";

interface OrderRow {
  id: string;
  customer_id: string;
  status: OrderStatus;
  total_cents: number;
  created_at: string;
}

const COLUMNS = "id, customer_id, status, total_cents, created_at";

function toOrder(row: OrderRow): Order {
  return {
    id: row.id,
    customerId: row.customer_id,
    status: row.status,
    totalCents: row.total_cents,
    createdAt: row.created_at,
  };
}

export function listOrders(db: Db, customerId: string): Order[] {
  const rows = db.all<OrderRow>(
    `SELECT ${COLUMNS} FROM orders WHERE customer_id = ? ORDER BY created_at DESC`,
    [customerId],
  );
  return rows.map(toOrder);
}

export function getOrder(db: Db, id: string): Order | undefined {
  const row = db.get<OrderRow>(`SELECT ${COLUMNS} FROM orders WHERE id = ?`, [id]);
  return row && toOrder(row);
}

export function insertOrder(db: Db, order: Order): void {
  db.run(`INSERT INTO orders (${COLUMNS}) VALUES (?, ?, ?, ?, ?)`, [
    order.id,
    order.customerId,
    order.status,
    order.totalCents,
    order.createdAt,
  ]);
}
""",
    "src/orders/routes.ts": """\
import type { FastifyInstance } from "fastify";
import type { Db } from "../db/pool.js";
import { getOrder, listOrders } from "./repo.js";

export async function orderRoutes(app: FastifyInstance, { db }: { db: Db }) {
  app.get<{ Params: { customer: string } }>("/customers/:customer/orders", async (request) => {
    return listOrders(db, request.params.customer);
  });

  app.get<{ Params: { id: string } }>("/orders/:id", async (request, reply) => {
    const order = getOrder(db, request.params.id);
    if (!order) return reply.code(404).send({ error: "order_not_found" });
    return order;
  });
}
""",
    "src/reports/monthly.ts": """\
import type { Db } from "../db/pool.js";
import { listOrders } from "../orders/repo.js";

/** Revenue of one customer in one month, in cents. `month` is "2026-03". */
export function monthlyRevenue(db: Db, customerId: string, month: string): number {
  return listOrders(db, customerId)
    .filter((order) => order.status !== "cancelled" && order.createdAt.startsWith(month))
    .reduce((sum, order) => sum + order.totalCents, 0);
}
""",
    "src/coupons/expiry.ts": """\
export interface Coupon {
  code: string;
  percent: number;
  expiresAt: number;
}

export function createCoupon(code: string, percent: number, ttlMs: number): Coupon {
  return { code, percent, expiresAt: Date.now() + ttlMs };
}

export function isExpired(coupon: Coupon): boolean {
  return Date.now() > coupon.expiresAt;
}
""",
    "src/coupons/routes.ts": """\
import type { FastifyInstance } from "fastify";
import type { Db } from "../db/pool.js";
import { isExpired, type Coupon } from "./expiry.js";

export async function couponRoutes(app: FastifyInstance, { db }: { db: Db }) {
  app.get<{ Params: { code: string } }>("/coupons/:code", async (request, reply) => {
    const coupon = db.get<Coupon>(
      "SELECT code, percent, expires_at AS expiresAt FROM coupons WHERE code = ?",
      [request.params.code],
    );
    if (!coupon) return reply.code(404).send({ error: "coupon_not_found" });
    if (isExpired(coupon)) return reply.code(410).send({ error: "coupon_expired" });
    return { code: coupon.code, percent: coupon.percent };
  });
}
""",
    "test/helpers.ts": """\
import { readFileSync, readdirSync } from "node:fs";
import { openDb, type Db } from "../src/db/pool.js";
import { insertOrder } from "../src/orders/repo.js";

/** A database in memory with every migration applied. */
export function freshDb(): Db {
  const db = openDb(":memory:");
  for (const file of readdirSync("migrations").sort()) {
    for (const statement of readFileSync(`migrations/${file}`, "utf8").split(";\\n")) {
      if (statement.trim()) db.run(statement, []);
    }
  }
  return db;
}

/** `count` paid orders of `customer`, one a minute, the last one newest. */
export function seedOrders(db: Db, customer: string, count: number): void {
  for (let n = 0; n < count; n++) {
    const createdAt = new Date(Date.UTC(2026, 0, 1, 0, n)).toISOString();
    insertOrder(db, { id: `o${n}`, customerId: customer, status: "paid", totalCents: 100 + n, createdAt });
  }
}
""",
    "test/orders.test.ts": """\
import Fastify from "fastify";
import { describe, expect, it } from "vitest";
import { orderRoutes } from "../src/orders/routes.js";
import { freshDb, seedOrders } from "./helpers.js";

function serverWith(count: number) {
  const db = freshDb();
  seedOrders(db, "ada", count);
  const app = Fastify();
  app.register(orderRoutes, { db });
  return app;
}

describe("GET /customers/:customer/orders", () => {
  it("lists newest first", async () => {
    const reply = await serverWith(3).inject("/customers/ada/orders");
    expect(reply.json().map((order: { id: string }) => order.id)).toEqual(["o2", "o1", "o0"]);
  });

  it("is empty for an unknown customer", async () => {
    const reply = await serverWith(3).inject("/customers/bob/orders");
    expect(reply.json()).toEqual([]);
  });
});

describe("GET /orders/:id", () => {
  it("answers 404 for an unknown id", async () => {
    const reply = await serverWith(0).inject("/orders/o9");
    expect(reply.statusCode).toBe(404);
  });
});
""",
    "test/coupons.test.ts": """\
import { describe, expect, it } from "vitest";
import { createCoupon, isExpired } from "../src/coupons/expiry.js";

const sleep = (ms: number) => new Promise((done) => setTimeout(done, ms));

describe("coupons", () => {
  it("is valid when made", () => {
    expect(isExpired(createCoupon("SPRING", 10, 1000))).toBe(false);
  });

  it("expires after its time to live", async () => {
    const coupon = createCoupon("FLASH", 50, 10);
    await sleep(10);
    expect(isExpired(coupon)).toBe(true);
  });

  it("keeps its percentage", () => {
    expect(createCoupon("SPRING", 10, 1000).percent).toBe(10);
  });
});
""",
    "migrations/001_orders.sql": """\
CREATE TABLE orders (
  id TEXT PRIMARY KEY,
  customer_id TEXT NOT NULL,
  status TEXT NOT NULL,
  total_cents INTEGER NOT NULL,
  created_at TEXT NOT NULL
);
""",
    "migrations/002_coupons.sql": """\
CREATE TABLE coupons (
  code TEXT PRIMARY KEY,
  percent INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
);
""",
    "migrations/003_orders_customer.sql": """\
CREATE INDEX orders_customer ON orders (customer_id);
""",
    "docs/api.md": """\
# shop-api

## Orders

`GET /customers/:customer/orders` lists the orders of a customer, newest first.

```json
[{ "id": "o2", "status": "paid", "totalCents": 1290, "createdAt": "2026-01-01T00:02:00.000Z" }]
```

`GET /orders/:id` answers one order, or 404 with `order_not_found`.

## Coupons

`GET /coupons/:code` answers the coupon, 404 with `coupon_not_found`, or 410 with `coupon_expired`.
""",
    "CHANGELOG.md": """\
# Changelog

## Unreleased

## 1.14.2

- Coupons answer 410 once they have expired.

## 1.14.1

- Orders keep their status when a payment is retried.
""",
}


# --- the story ---------------------------------------------------------------------------------------------------------

CURSOR = """\
import type { Order } from "../orders/types.js";

/** Where a page ends: the last order on it. Opaque to clients. */
export interface Position {
  createdAt: string;
  id: string;
}

export function encodeCursor(order: Order): string {
  return Buffer.from(JSON.stringify([order.createdAt, order.id])).toString("base64");
}

export function decodeCursor(text: string): Position | undefined {
  try {
    const [createdAt, id] = JSON.parse(Buffer.from(text, "base64url").toString());
    return { createdAt, id };
  } catch {
    return undefined;
  }
}
"""

CURSOR_TEST = """\
import { describe, expect, it } from "vitest";
import { decodeCursor, encodeCursor } from "../src/lib/cursor.js";

const order = {
  id: "o7",
  customerId: "ada",
  status: "paid" as const,
  totalCents: 100,
  createdAt: "2026-01-01T00:07:00.000Z",
};

describe("cursor", () => {
  it("comes back as it went", () => {
    expect(decodeCursor(encodeCursor(order))).toEqual({ createdAt: order.createdAt, id: "o7" });
  });

  it("is safe in a URL", () => {
    expect(encodeCursor({ ...order, id: "o7~~~??" })).toMatch(/^[\\w-]+$/);
  });

  it.each(["", "zzz", "WzFd", "bnVsbA"])("refuses %j", (text) => {
    expect(decodeCursor(text)).toBeUndefined();
  });
});
"""

CLOCK = """\
/** The time, as a value that a test can set. */
export interface Clock {
  now(): number;
}

export const systemClock: Clock = { now: () => Date.now() };

/** A clock that stands still until it is told to move. */
export function manualClock(start = 0): Clock & { advance(ms: number): void } {
  let time = start;
  return {
    now: () => time,
    advance: (ms) => {
      time += ms;
    },
  };
}
"""

LOOP = 'for i in $(seq 1 20); do pnpm -s vitest run test/coupons.test.ts > /dev/null && echo ok || echo FAIL; done | sort | uniq -c'

BASE = [("test/coupons.test.ts", 3, 31), ("test/orders.test.ts", 3, 48)]
CURSORS = ("test/cursor.test.ts", 6, 7)

DONE_1 = "x Map the callers of listOrders | Mapping the callers of listOrders"


def with_cursors(orders, order_ms=57, coupon_ms=30):
    return [("test/coupons.test.ts", 3, coupon_ms), CURSORS, ("test/orders.test.ts", orders, order_ms)]


def story(s):
    look_around(s)
    paginate(s)
    flaky_test(s)
    bad_limits(s)
    rename_and_document(s)
    index_and_commit(s)
    s.end_of_prompt()


def look_around(s):
    s.prompt(
        "GET /customers/:customer/orders returns everything. Customers with a few thousand orders run into the 10 s "
        "gateway timeout. I'd like pages there: a limit and a cursor, newest first as today. Have a look around "
        "first and tell me the plan before you change anything."
    )
    s.step(
        glob("src/**/*.ts"),
        grep("listOrders"),
        think="I should find the endpoint, the query behind it, and everybody who calls that query, before I propose "
        "anything. A glob for the layout and a search for listOrders give most of it.",
        say="I'll look at the layout and at who uses the query behind that endpoint.",
    )
    s.step(read("src/orders/routes.ts"), read("src/orders/repo.ts"), read("src/orders/types.ts"))
    s.step(
        read("test/orders.test.ts"),
        think="The route returns a bare array. A page needs a second value beside the items, so the shape of the "
        "answer has to change: { items, next }. The tests compare the bare array and will have to follow.",
    )
    s.step(
        task(
            "Find users of order lists",
            "Find what depends on the list of orders: callers of listOrders, docs of the response, tests, indexes. "
            "Report paths. Change nothing.",
            [
                grep("listOrders", mode="files_with_matches"),
                read("src/reports/monthly.ts"),
                grep("INDEX", folder="migrations"),
            ],
            "Users of the order list:\n"
            "- src/orders/routes.ts: the endpoint; sends the array as it is.\n"
            "- src/reports/monthly.ts: monthlyRevenue() needs ALL orders of a customer, so it must not get one page.\n"
            "- test/orders.test.ts: compares the bare array, newest first.\n"
            "- docs/api.md: shows the bare array as the response.\n"
            "- migrations/003_orders_customer.sql: index on (customer_id) only; nothing covers created_at.",
        ),
        say="A second pair of eyes on who depends on the shape of that list:",
    )
    s.step(npm_test(suite("npm", BASE)), say="And the state of the tests before any change:")
    s.step(
        todo(
            "x Map the callers of listOrders | Mapping the callers of listOrders",
            "> Agree on the plan | Agreeing on the plan",
            "- Add an opaque cursor | Adding an opaque cursor",
            "- Page the query and the route | Paging the query and the route",
            "- Keep monthly reports on all orders | Keeping monthly reports on all orders",
            "- Update tests | Updating tests",
        )
    )
    s.step(
        say="Here is the plan.\n\n"
        "1. `src/lib/cursor.ts`: an opaque cursor made of the last order's `created_at` and `id`, so that equal times "
        "do not lose or repeat orders.\n"
        "2. `repo.ts`: a new `pageOrders(db, customer, limit, after)`. `listOrders` stays for "
        "`reports/monthly.ts`, which needs all of them, under the clearer name `allOrders`.\n"
        "3. `routes.ts`: `?limit=` (default 20, at most 100) and `?cursor=`; the answer becomes "
        "`{ items, next }`.\n"
        "4. Tests for page borders, equal times, a bad cursor.\n\n"
        "One thing to know: the answer changes from an array to an object, so clients must follow. Shall I go ahead?"
    )


def paginate(s):
    s.prompt("Yes, go ahead. I prefer small modules with plain functions over classes here.")
    s.step(
        grep("cursor"),
        think="No cursor helper exists, I think, but a search is cheap.",
    )
    s.step(write("src/lib/cursor.ts", CURSOR), say="Nothing there yet. The cursor first, with its test.")
    s.step(write("test/cursor.test.ts", CURSOR_TEST))
    only_cursor = "npx vitest run test/cursor.test.ts"
    s.step(
        bash(
            only_cursor,
            "Run the cursor test",
            suite(
                "direct",
                [("test/cursor.test.ts", 6, 11)],
                [
                    (
                        "test/cursor.test.ts",
                        "cursor > is safe in a URL",
                        [
                            "AssertionError: expected 'WyIyMDI2LTAxLTAxVDAwOjA3OjAwLjAwMFoiLCJvN35+fj8/Il0=' to match /^[\\w-]+$/",
                            " ❯ test/cursor.test.ts:18:54",
                        ],
                    ),
                    (
                        "test/cursor.test.ts",
                        'cursor > refuses "WzFd"',
                        [
                            "AssertionError: expected { createdAt: 1, id: undefined } to be undefined",
                            " ❯ test/cursor.test.ts:22:32",
                        ],
                    ),
                ],
                took="412ms",
            ),
            code=1,
        )
    )
    s.step(
        edit("src/lib/cursor.ts", '.toString("base64");', '.toString("base64url");'),
        think="Two real mistakes. I encode with base64 but decode base64url, so + and / leak into URLs. And a JSON "
        "array of the wrong shape passes as a position.",
    )
    s.step(
        edit(
            "src/lib/cursor.ts",
            "    return { createdAt, id };",
            '    return typeof createdAt === "string" && typeof id === "string" ? { createdAt, id } : undefined;',
        )
    )
    s.step(bash(only_cursor, "Run the cursor test", suite("direct", [("test/cursor.test.ts", 6, 7)], took="398ms")))
    s.step(
        todo(
            DONE_1,
            "x Agree on the plan | Agreeing on the plan",
            "x Add an opaque cursor | Adding an opaque cursor",
            "> Page the query and the route | Paging the query and the route",
            "- Keep monthly reports on all orders | Keeping monthly reports on all orders",
            "- Update tests | Updating tests",
        )
    )
    s.step(
        edit(
            "src/orders/types.ts",
            "  totalCents: number;\n  createdAt: string;\n}\n",
            "  totalCents: number;\n  createdAt: string;\n}\n\n/** `next` is absent on the last page. */\n"
            "export interface OrderPage {\n  items: Order[];\n  next?: string;\n}\n",
        ),
        say="Now the query. The page type, then `repo.ts`.",
    )
    s.step(
        edit(
            "src/orders/repo.ts",
            "export function listOrders(db: Db, customerId: string): Order[] {\n",
            "/** Every order of a customer, newest first. For reports; endpoints take pages. */\n"
            "export function allOrders(db: Db, customerId: string): Order[] {\n",
        )
    )
    s.step(
        edit(
            "src/orders/repo.ts",
            "export function listOrders(db: Db, customerId: string): Order[] {\n  const rows",
            "export function allOrders(db: Db, customerId: string): Order[] {\n  const rows",
            fails=True,
        )
    )
    s.step(
        read("src/orders/repo.ts"),
        think="I tried to replace text that I had just changed. Read the file again instead of guessing.",
    )
    s.step(
        edit(
            "src/orders/repo.ts",
            "export function getOrder(",
            "/** At most `limit` orders, newest first, that come after `after`. */\n"
            "export function pageOrders(db: Db, customerId: string, limit: number, after?: Position): OrderPage {\n"
            "  const rows = db.all<OrderRow>(\n"
            "    `SELECT ${COLUMNS} FROM orders WHERE customer_id = ?\n"
            "       AND (? IS NULL OR (created_at, id) < (?, ?))\n"
            "     ORDER BY created_at DESC, id DESC LIMIT ?`,\n"
            "    [customerId, after?.id ?? null, after?.createdAt ?? null, after?.id ?? null, limit + 1],\n"
            "  );\n"
            "  const items = rows.slice(0, limit).map(toOrder);\n"
            "  const last = items.at(-1);\n"
            "  return rows.length > limit && last ? { items, next: encodeCursor(last) } : { items };\n"
            "}\n\n"
            "export function getOrder(",
        ),
        say="One row more than asked for tells whether there is a next page, without a count query.",
    )
    s.step(
        edit(
            "src/orders/repo.ts",
            'import type { Order, OrderStatus } from "./types.js";\n',
            'import { encodeCursor, type Position } from "../lib/cursor.js";\n'
            'import type { Order, OrderPage, OrderStatus } from "./types.js";\n',
        )
    )
    s.step(read("src/orders/routes.ts"), say="Now the route.")
    s.step(
        edit(
            "src/orders/routes.ts",
            '  app.get<{ Params: { customer: string } }>("/customers/:customer/orders", async (request) => {\n'
            "    return listOrders(db, request.params.customer);\n"
            "  });\n",
            "  app.get<{ Params: { customer: string }; Querystring: PageQuery }>(\n"
            '    "/customers/:customer/orders",\n'
            "    async (request, reply) => {\n"
            "      const { limit, cursor } = request.query;\n"
            "      const after = cursor === undefined ? undefined : decodeCursor(cursor);\n"
            '      if (cursor !== undefined && !after) return reply.code(400).send({ error: "bad_cursor" });\n'
            "      return pageOrders(db, request.params.customer, clampLimit(limit), after);\n"
            "    },\n"
            "  );\n",
        )
    )
    s.step(
        edit(
            "src/orders/routes.ts",
            'import { getOrder, listOrders } from "./repo.js";\n',
            'import { decodeCursor } from "../lib/cursor.js";\n'
            'import { getOrder, pageOrders } from "./repo.js";\n\n'
            "interface PageQuery {\n  limit?: string;\n  cursor?: string;\n}\n\n"
            "const LIMIT_DEFAULT = 20;\nconst LIMIT_MAX = 100;\n\n"
            "function clampLimit(text: string | undefined): number {\n"
            "  const limit = Number(text ?? LIMIT_DEFAULT);\n"
            "  return Math.min(Math.max(Math.trunc(limit) || LIMIT_DEFAULT, 1), LIMIT_MAX);\n"
            "}\n",
        )
    )
    s.step(
        bash(
            "npm run typecheck",
            "Check types",
            f"{TYPECHECK}\n\nsrc/reports/monthly.ts(2,10): error TS2305: Module '\"../orders/repo.js\"' has no exported "
            "member 'listOrders'.",
            code=2,
            takes=4_100,
        )
    )
    s.step(
        grep("listOrders"),
        read("src/reports/monthly.ts"),
        say="As expected, the report still asks for the old name. Any others?",
    )
    s.step(
        edit(
            "src/reports/monthly.ts",
            'import { listOrders } from "../orders/repo.js";',
            'import { allOrders } from "../orders/repo.js";',
        ),
        edit("src/reports/monthly.ts", "  return listOrders(db, customerId)", "  return allOrders(db, customerId)"),
    )
    s.step(bash("npm run typecheck", "Check types", TYPECHECK, takes=4_000))
    s.step(
        npm_test(
            suite(
                "npm",
                with_cursors(3),
                [
                    (
                        "test/orders.test.ts",
                        "GET /customers/:customer/orders > lists newest first",
                        ["TypeError: reply.json(...).map is not a function", " ❯ test/orders.test.ts:17:25"],
                    ),
                    (
                        "test/orders.test.ts",
                        "GET /customers/:customer/orders > is empty for an unknown customer",
                        ["AssertionError: expected { items: [] } to deeply equal []", " ❯ test/orders.test.ts:22:26"],
                    ),
                ],
            ),
            code=1,
        )
    )
    s.step(
        edit(
            "test/orders.test.ts",
            '    expect(reply.json().map((order: { id: string }) => order.id)).toEqual(["o2", "o1", "o0"]);\n',
            '    expect(reply.json().items.map((order: { id: string }) => order.id)).toEqual(["o2", "o1", "o0"]);\n',
        ),
        say="Both failures are the agreed change of shape. I'll move the two tests and add the page borders.",
    )
    s.step(
        edit(
            "test/orders.test.ts",
            "    expect(reply.json()).toEqual([]);\n  });\n",
            "    expect(reply.json()).toEqual({ items: [] });\n  });\n\n"
            '  it("walks all pages without loss or repeat", async () => {\n'
            "    const app = serverWith(45);\n"
            "    const seen: string[] = [];\n"
            '    let next = "";\n'
            "    do {\n"
            "      const page = (await app.inject(`/customers/ada/orders?limit=20${next}`)).json();\n"
            "      seen.push(...page.items.map((order: { id: string }) => order.id));\n"
            '      next = page.next ? `&cursor=${page.next}` : "";\n'
            "    } while (next);\n"
            "    expect(seen).toEqual(Array.from({ length: 45 }, (_, n) => `o${44 - n}`));\n"
            "  });\n\n"
            '  it("refuses a cursor it did not make", async () => {\n'
            '    const reply = await serverWith(3).inject("/customers/ada/orders?cursor=zzz");\n'
            "    expect(reply.statusCode).toBe(400);\n"
            "  });\n",
        )
    )
    s.step(npm_test(suite("npm", with_cursors(5))))
    s.step(
        bash(
            "git status --short",
            "Show changed files",
            " M src/orders/repo.ts\n M src/orders/routes.ts\n M src/orders/types.ts\n M src/reports/monthly.ts\n"
            " M test/orders.test.ts\n?? src/lib/\n?? test/cursor.test.ts",
            takes=90,
        ),
        todo(
            DONE_1,
            "x Agree on the plan | Agreeing on the plan",
            "x Add an opaque cursor | Adding an opaque cursor",
            "x Page the query and the route | Paging the query and the route",
            "x Keep monthly reports on all orders | Keeping monthly reports on all orders",
            "x Update tests | Updating tests",
        ),
    )
    s.step(
        say="Pages work: `?limit=` (20 by default, at most 100) and `?cursor=`, 45 orders walk through three pages "
        "without loss or repeat, a foreign cursor gets a 400. Monthly reports keep reading all orders. 14 tests pass."
    )


def flaky_test(s):
    s.prompt(
        "Nice. Something else: in CI coupons.test.ts fails about one run in ten, nobody knows why. Find the cause and "
        "fix it properly, no retries. And please, not npm, use pnpm: our lockfile is pnpm's."
    )
    s.step(
        read("test/coupons.test.ts"),
        read("src/coupons/expiry.ts"),
        think="A test that sleeps exactly as long as the time to live, and a strict comparison: setTimeout may fire "
        "in the same millisecond, or a little early against Date.now. That would fail now and then. Measure first.",
        say="pnpm it is. The test and the code under it:",
    )
    s.step(
        bash(
            LOOP,
            "Run the coupon test twenty times",
            "      3 FAIL\n     17 ok",
            takes=19_800,
            progress="FAIL\nok\nok\nok",
        ),
        say="I suspect the sleep of exactly 10 ms. Let me see how often it fails here.",
    )
    s.step(
        grep(r"Date\.now|new Date\(", folder="src"),
        todo(
            "x Reproduce the flaky coupon test | Reproducing the flaky coupon test",
            "> Give coupons a clock as a value | Giving coupons a clock as a value",
            "- Test expiry without sleeping | Testing expiry without sleeping",
            "- Run it twenty times again | Running it twenty times again",
        ),
        say="3 of 20 fail: `sleep(10)` can end in the very millisecond in which the coupon expires, and `isExpired` "
        "asks for *later than*. Who else reads the clock?",
    )
    s.step(write("src/lib/clock.ts", CLOCK))
    s.step(
        edit(
            "src/coupons/expiry.ts",
            "export function createCoupon(code: string, percent: number, ttlMs: number): Coupon {\n"
            "  return { code, percent, expiresAt: Date.now() + ttlMs };\n",
            "export function createCoupon(code: string, percent: number, ttlMs: number, clock = systemClock): Coupon {\n"
            "  return { code, percent, expiresAt: clock.now() + ttlMs };\n",
        )
    )
    s.step(
        edit(
            "src/coupons/expiry.ts",
            "export interface Coupon {\n",
            'import { systemClock } from "../lib/clock.js";\n\nexport interface Coupon {\n',
        )
    )
    s.step(
        edit(
            "test/coupons.test.ts",
            '  it("expires after its time to live", async () => {\n'
            '    const coupon = createCoupon("FLASH", 50, 10);\n'
            "    await sleep(10);\n"
            "    expect(isExpired(coupon)).toBe(true);\n"
            "  });\n",
            '  it("expires when its time to live is over, not before", () => {\n'
            "    const clock = manualClock();\n"
            '    const coupon = createCoupon("FLASH", 50, 10, clock);\n'
            "    clock.advance(9);\n"
            "    expect(isExpired(coupon, clock)).toBe(false);\n"
            "    clock.advance(1);\n"
            "    expect(isExpired(coupon, clock)).toBe(true);\n"
            "  });\n",
        )
    )
    s.step(
        edit(
            "test/coupons.test.ts",
            'import { createCoupon, isExpired } from "../src/coupons/expiry.js";\n\n'
            "const sleep = (ms: number) => new Promise((done) => setTimeout(done, ms));\n",
            'import { createCoupon, isExpired } from "../src/coupons/expiry.js";\n'
            'import { manualClock } from "../src/lib/clock.js";\n',
        )
    )
    only_coupons = "pnpm vitest run test/coupons.test.ts"
    s.step(
        bash(
            only_coupons,
            "Run the coupon test",
            suite(
                "direct",
                [("test/coupons.test.ts", 3, 9)],
                [
                    (
                        "test/coupons.test.ts",
                        "coupons > expires when its time to live is over, not before",
                        ["AssertionError: expected true to be false", " ❯ test/coupons.test.ts:13:40"],
                    )
                ],
                took="371ms",
            ),
            code=1,
        )
    )
    s.step(
        read("src/coupons/expiry.ts"),
        think="isExpired ignores the clock still and compares with the real time. I forgot that half.",
    )
    s.step(
        edit(
            "src/coupons/expiry.ts",
            "export function isExpired(coupon: Coupon): boolean {\n  return Date.now() > coupon.expiresAt;\n",
            "/** A coupon is valid up to, and not including, the moment `expiresAt`. */\n"
            "export function isExpired(coupon: Coupon, clock = systemClock): boolean {\n"
            "  return clock.now() >= coupon.expiresAt;\n",
        ),
        say="`isExpired` still read the real clock. While there, the border gets a definition: expired *at* "
        "`expiresAt`, not one millisecond after.",
    )
    s.step(bash(only_coupons, "Run the coupon test", suite("direct", [("test/coupons.test.ts", 3, 4)], took="352ms")))
    s.step(bash(LOOP, "Run the coupon test twenty times", "     20 ok", takes=18_900))
    s.step(grep(r"Date\.now|new Date\(", folder="src"))
    s.step(pnpm_test(suite("pnpm", with_cursors(5, coupon_ms=5))))
    s.step(
        todo(
            "x Reproduce the flaky coupon test | Reproducing the flaky coupon test",
            "x Give coupons a clock as a value | Giving coupons a clock as a value",
            "x Test expiry without sleeping | Testing expiry without sleeping",
            "x Run it twenty times again | Running it twenty times again",
        )
    )
    s.step(
        say="Found and fixed. The test slept exactly as long as the coupon lived, and `isExpired` wanted strictly "
        "more; when the timer ended within the same millisecond it failed (3 of 20 runs here). Coupons now take a "
        "clock as a value, the test moves it by hand and also pins the border. 20 of 20 runs pass, and faster."
    )


def bad_limits(s):
    s.prompt(
        "Reviewing the paging: limit=0 and limit=1000 are silently clamped. Clients then think they got what they "
        "asked for. Answer 400 with an error code instead, for anything that isn't a whole number from 1 to 100."
    )
    s.step(
        read("src/orders/routes.ts"),
        grep("clampLimit"),
        say="Agreed, a silent clamp hides mistakes. Here is the code in question:",
    )
    s.compact(
        "The conversation so far was compacted. Its summary:\n\n"
        "Goal: pages for GET /customers/:customer/orders in /home/dev/shop-api (Fastify, better-sqlite3, vitest).\n\n"
        "Done:\n"
        "- src/lib/cursor.ts: encodeCursor/decodeCursor, base64url of [createdAt, id]; test/cursor.test.ts.\n"
        "- src/orders/repo.ts: allOrders (reports) and pageOrders (limit + 1 rows tell whether there is a next page).\n"
        "- src/orders/routes.ts: ?limit, ?cursor; clampLimit clamps to 1..100; answer { items, next }.\n"
        "- src/reports/monthly.ts uses allOrders.\n"
        "- Flaky coupons.test.ts: cause was a sleep as long as the time to live. src/lib/clock.ts, clock passed as a "
        "value, 20 of 20 runs pass.\n\n"
        "The user wants: pnpm, not npm; small modules with plain functions; no retries in tests.\n\n"
        "Now: limit outside 1..100 or not a whole number must answer 400 with an error code instead of being "
        "clamped. routes.ts was just read for that; nothing is changed yet."
    )
    s.step(
        todo(
            "> Refuse bad limits with 400 | Refusing bad limits with 400",
            "- Test the borders 0, 1, 100, 101 | Testing the borders 0, 1, 100, 101",
        ),
        think="After the summary I no longer have the text of routes.ts. Read it and the test again before editing.",
    )
    s.step(read("src/orders/routes.ts"), read("test/orders.test.ts", offset=15, limit=36))
    s.step(
        edit(
            "src/orders/routes.ts",
            "function clampLimit(text: string | undefined): number {\n"
            "  const limit = Number(text ?? LIMIT_DEFAULT);\n"
            "  return Math.min(Math.max(Math.trunc(limit) || LIMIT_DEFAULT, 1), LIMIT_MAX);\n"
            "}\n",
            "/** The limit asked for, or undefined if it is no whole number from 1 to LIMIT_MAX. */\n"
            "function parseLimit(text: string | undefined): number | undefined {\n"
            "  if (text === undefined) return LIMIT_DEFAULT;\n"
            "  const limit = Number(text);\n"
            "  return Number.isInteger(limit) && limit >= 1 && limit <= LIMIT_MAX ? limit : undefined;\n"
            "}\n",
        )
    )
    s.step(
        edit(
            "src/orders/routes.ts",
            "      const { limit, cursor } = request.query;\n",
            "      const { cursor } = request.query;\n"
            "      const limit = parseLimit(request.query.limit);\n"
            '      if (!limit) return reply.code(400).send({ error: "bad_limit", max: LIMIT_MAX });\n',
        )
    )
    s.step(
        edit(
            "test/orders.test.ts",
            '  it("refuses a cursor it did not make", async () => {\n',
            '  it.each(["0", "101", "-1", "2.5", "ten", ""])("refuses limit=%s", async (limit) => {\n'
            "    const reply = await serverWith(3).inject(`/customers/ada/orders?limit=${limit}`);\n"
            "    expect(reply.statusCode).toBe(400);\n"
            '    expect(reply.json().error).toBe("bad_limit");\n'
            "  });\n\n"
            '  it("refuses a cursor it did not make", async () => {\n',
        )
    )
    s.step(
        pnpm_test(
            suite(
                "pnpm",
                with_cursors(11, 66, 5),
                [
                    (
                        "test/orders.test.ts",
                        f"GET /customers/:customer/orders > {name}",
                        ["ReferenceError: clampLimit is not defined", " ❯ src/orders/routes.ts:33:49"],
                    )
                    for name in ("lists newest first", "is empty for an unknown customer", "walks all pages without loss or repeat")
                ],
            ),
            code=1,
        )
    )
    s.step(grep("clampLimit"), say="One call of the old name is left.")
    s.step(
        edit(
            "src/orders/routes.ts",
            "request.params.customer, clampLimit(limit), after)",
            "request.params.customer, limit, after)",
        )
    )
    s.step(pnpm_test(suite("pnpm", with_cursors(11, 71, 5))))
    s.step(bash("pnpm typecheck", "Check types", TYPECHECK, takes=3_900))
    s.step(
        say="`limit` must now be a whole number from 1 to 100, anything else gets 400 with `bad_limit` and the "
        "maximum. Six bad values are in the tests; types and all 20 tests pass."
    )


def rename_and_document(s):
    s.prompt(
        "The mobile team asks for `next_cursor` instead of `next` in the answer. Rename it everywhere, and write docs and "
        "the changelog, please."
    )
    s.step(
        grep(r"\bnext\b", glob="*.ts"),
        read("src/orders/types.ts"),
        say="Where the name stands:",
    )
    s.step(
        todo(
            "x Refuse bad limits with 400 | Refusing bad limits with 400",
            "x Test the borders 0, 1, 100, 101 | Testing the borders 0, 1, 100, 101",
            "> Rename next to next_cursor | Renaming next to next_cursor",
            "- Document pages in docs/api.md | Documenting pages in docs/api.md",
            "- Add changelog lines | Adding changelog lines",
        ),
        edit(
            "src/orders/types.ts",
            "/** `next` is absent on the last page. */\nexport interface OrderPage {\n  items: Order[];\n  next?: string;\n",
            "/** `next_cursor` is absent on the last page. */\nexport interface OrderPage {\n  items: Order[];\n"
            "  next_cursor?: string;\n",
        ),
    )
    s.step(
        edit(
            "src/orders/repo.ts",
            "{ items, next: encodeCursor(last) }",
            "{ items, next_cursor: encodeCursor(last) }",
        )
    )
    s.step(
        edit(
            "test/orders.test.ts",
            '      next = page.next ? `&cursor=${page.next}` : "";\n',
            '      next = page.next_cursor ? `&cursor=${page.next_cursor}` : "";\n',
        )
    )
    s.step(grep(r"\bnext\b", glob="*.ts"), think="What is left must be the local variable of the test only.")
    s.step(pnpm_test(suite("pnpm", with_cursors(11, 69, 4))), say="Only the test's own variable is left. All tests:")
    s.step(read("docs/api.md"), read("CHANGELOG.md"))
    s.step(
        edit(
            "docs/api.md",
            "`GET /customers/:customer/orders` lists the orders of a customer, newest first.\n\n"
            '```json\n[{ "id": "o2", "status": "paid", "totalCents": 1290, "createdAt": "2026-01-01T00:02:00.000Z" }]\n```\n',
            "`GET /customers/:customer/orders` lists the orders of a customer, newest first, in pages.\n\n"
            "| parameter | meaning |\n|---|---|\n"
            "| `limit` | orders on a page, 1 to 100, default 20 |\n"
            "| `cursor` | the `next_cursor` of the page before |\n\n"
            "```json\n{\n"
            '  "items": [{ "id": "o2", "status": "paid", "totalCents": 1290, "createdAt": "2026-01-01T00:02:00.000Z" }],\n'
            '  "next_cursor": "WyIyMDI2Il0"\n}\n```\n\n'
            "There is no `next_cursor` on the last page. A cursor is opaque: send it back as it came. Errors: 400 with\n"
            "`bad_limit` (and `max`) or `bad_cursor`.\n",
        )
    )
    s.step(
        edit(
            "CHANGELOG.md",
            "## Unreleased\n",
            "## Unreleased\n\n"
            "- **Changed**: the list of a customer's orders comes in pages, as `{ items, next_cursor }` instead of an array.\n"
            "- A `limit` outside 1 to 100 answers 400 with `bad_limit`.\n"
            "- Coupons expire at the given moment, no longer one millisecond later.\n",
        )
    )
    s.step(
        bash(
            "git status --short",
            "Show changed files",
            " M CHANGELOG.md\n M docs/api.md\n M src/coupons/expiry.ts\n M src/orders/repo.ts\n M src/orders/routes.ts\n"
            " M src/orders/types.ts\n M src/reports/monthly.ts\n M test/coupons.test.ts\n M test/orders.test.ts\n?? src/lib/\n"
            "?? test/cursor.test.ts",
            takes=90,
        )
    )
    s.step(
        say="Renamed in the type, the query and the test; nothing else used it. `docs/api.md` describes parameters, "
        "answer and errors, the changelog names the breaking change first."
    )


def index_and_commit(s):
    s.prompt(
        "Before you commit: is there an index that fits the new query? If not add a migration. Then commit, don't push."
    )
    s.step(
        grep("CREATE INDEX", folder="migrations"),
        think="The query filters by customer_id and orders by created_at, id. The index of migration 003 covers only "
        "customer_id, so SQLite would sort all orders of a customer for every page.",
    )
    s.step(read("migrations/004_orders_page.sql", fails=True))
    s.step(
        write(
            "migrations/004_orders_page.sql",
            "-- Serves pageOrders: one customer, newest first, from any position, without a sort.\n"
            "CREATE INDEX orders_page ON orders (customer_id, created_at DESC, id DESC);\n"
            "DROP INDEX orders_customer;\n",
        ),
        say="There is none: 003 covers `customer_id` only, so each page would sort all orders of that customer. A "
        "new index serves both, and makes the old one superfluous.",
    )
    s.step(pnpm_test(suite("pnpm", with_cursors(11, 64, 4))))
    s.step(bash("pnpm typecheck", "Check types", TYPECHECK, takes=3_900))
    s.step(
        bash(
            "git add -A && git commit -q -m 'Serve orders in pages; coupons take a clock' && git log --oneline -1",
            "Commit",
            "4be0c1d Serve orders in pages; coupons take a clock",
            takes=310,
        )
    )
    s.step(
        bash("git status --short", "Show changed files", "", takes=80),
        todo(
            "x Rename next to next_cursor | Renaming next to next_cursor",
            "x Document pages in docs/api.md | Documenting pages in docs/api.md",
            "x Add changelog lines | Adding changelog lines",
            "x Add an index for pages | Adding an index for pages",
            "x Commit | Committing",
        ),
    )
    s.step(
        say="Done, as `4be0c1d`, not pushed. Migration 004 adds an index on customer, time and id and drops the one it "
        "replaces, so a page needs no sort any more. 20 tests and the types pass."
    )


def render():
    session = Session({absolute(path): content for path, content in FILES.items()})
    story(session)
    title = {"type": "summary", "summary": "Orders in pages, and a flaky coupon test", "leafUuid": session.parent}
    lines = [json.dumps(record, ensure_ascii=False, separators=(",", ":")) for record in [title, *session.records]]
    return "\n".join(lines) + "\n", session


def main():
    target = pathlib.Path(__file__).with_name("demo-session.jsonl")
    text, session = render()
    if "--check" in sys.argv[1:]:
        if target.read_text(encoding="utf-8") != text:
            raise SystemExit(f"{target.name} is not what this script writes; run it without --check")
        print(f"{target.name} is up to date")
        return
    target.write_text(text, encoding="utf-8")
    size = len(text.encode())
    print(f"{target.name}: {len(session.records) + 1} records, {session.call_count} calls, {size} bytes")


if __name__ == "__main__":
    main()
