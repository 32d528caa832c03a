/** Shapes of answers: the names that the program's JSON has. */

import type { Json } from "./values.js";

export type { At, Json } from "./values.js";

export type Role = "system" | "user" | "assistant" | "tool";

export type RequestFormat = "anthropic" | "openai" | "responses" | "gemini";

export type Format = "anthropic" | "openai" | "responses" | "gemini" | "markdown" | "text";

export type ExportFormat = "anthropic" | "openai" | "responses" | "gemini" | "markdown" | "text" | "html" | "otlp";

export type Selection = "current" | "served" | "whole" | "recorded" | "history";

export type Mode = "append_only" | "batched" | "eager";

export type MemoryKind = "fact" | "preference" | "decision" | "note";
export type Lifespan = "session" | "project" | "permanent";
export type Outcome = "completed" | "failed" | "aborted";
export type FileChanger = "user" | "shell" | "subagent" | "host";

/** An item in a line. */
export interface ItemRow {
  item: string;
  seq: number;
  session: string;
  turn: number;
  kind: string;
  role: string;
  tool: string | null;
  call: string | null;
  hash: string | null;
  status: string | null;
  keys: string[];
  state: string;
  cause: string | null;
  rule: string | null;
  superseded_by: string | null;
  in_context: boolean;
  pinned: boolean;
  tokens: number;
  tokens_shown: number;
}

/** One face of an item as the model sees it. */
export interface FaceText {
  state: string;
  text: string | null;
  problem: string | null;
  tokens: number;
  tokens_shown: number;
}

/** An item of the context with its texts. */
export interface ContextItem extends ItemRow {
  input: FaceText | null;
  output: FaceText | null;
}

/** A memory item that holds. */
export interface ContextMemory {
  id: string;
  seq: number;
  kind: string;
  category: string;
  key: string | null;
  value: string | null;
  confidence: number;
}

/** The current context. */
export interface Context {
  session: string;
  host: string;
  title: string | null;
  project: string | null;
  at: number;
  turn: number;
  layer: string;
  policy: string;
  tokens_shown: number;
  tokens_whole: number;
  tokens_freed: number;
  tokens_by_turn: number[];
  item_count: number;
  hidden_count: number;
  items: ContextItem[];
  memory: ContextMemory[];
}

/** That one item superseded another, and by which rule. */
export interface EdgeRow {
  old: string;
  new: string | null;
  rule: string;
  key: string | null;
  seq: number;
  turn: number;
  released: boolean;
  tokens_freed: number;
}

/** An item and what superseded it, oldest first. */
export interface Chain {
  item: string;
  session: string;
  at: number;
  items: ItemRow[];
  edges: EdgeRow[];
  tokens_freed: number;
  is_cut: boolean;
  served?: Record<string, Json>[];
}

/** Why an item is in the context, or is not. */
export interface Explained extends ItemRow {
  at: number;
  visible: boolean;
  sentences: string[];
  edge: EdgeRow | null;
  edges_to_newer: EdgeRow[];
  edges_to_older: EdgeRow[];
  protection: Json;
  stale: number | null;
  policy: string;
  served?: Record<string, Json>[];
}

/** The todo list; `items` have the host's own fields besides `content`, `status` and `position`. */
export interface Todos {
  session: string;
  seq: number | null;
  turn: number | null;
  items: Record<string, Json>[];
  reminder_due: Json;
}

/** A memory item and where it stands. */
export interface MemoryRow {
  id: string;
  item: string;
  stream: string;
  kind: string;
  category: string;
  key: string | null;
  subject: string | null;
  value: string | null;
  rationale: string | null;
  alternatives: string[];
  related_files: string[];
  confidence: number;
  confirmed: number;
  lifespan: string;
  created: string;
  reinforced: string | null;
  source: string;
  standing: string;
  shadowed: boolean;
  superseded_by: string[];
  superseded_at: string | null;
  supersedes: string[];
  status: string | null;
  extra: Json;
}

/** What a command on memory recorded. */
export interface MemoryReceipt {
  id: string;
  stream: string;
  item: string | null;
  last_seq: number;
}

/** An item whose texts match. */
export interface Hit {
  item: string;
  seq: number;
  session: string;
  host: string;
  time: number | null;
  face: string;
  visible: boolean;
  seen: string;
  kind: string;
  matches: number;
  excerpts: Record<string, Json>[];
  row?: ItemRow;
}

/** What was gone through. */
export interface Scanned {
  events: number;
  bodies: number;
  bytes: number;
}

/** What a search found. */
export interface Found {
  items: Hit[];
  scanned: Scanned;
}

/** What a command on the context did. */
export interface ActReply {
  reply: string;
  last_seq: number | null;
  hidden: string[];
  shown: string[];
}

/** A call that was started and has not ended. */
export interface OpenCall {
  seq: number;
  call: string;
  tool: string;
}

/** What a session's last host left open. */
export interface Resumed {
  is_new: boolean;
  calls: OpenCall[];
  messages: string[];
}

/** An event in a line. */
export interface EventRow {
  seq: number;
  kind: string;
  stream: string;
  host: string | null;
  session: string | null;
  scope: string | null;
  recorded_at: number;
}

/** What became durable together. */
export interface Commit {
  last_seq: number;
  recorded_at: number;
  events: EventRow[];
}

/** What a provider would refuse. */
export interface Finding {
  rule: string;
  pointer: string;
  expected: string;
  found: string;
  says: string;
}

/** A session, project or user by its names. */
export interface StreamName {
  stream: string;
  scope: string;
  host: string;
  id: string;
  title: string | null;
  parent: string | null;
  head: number;
  began: number | null;
}

/** A session in a line. */
export interface SessionRow extends StreamName {
  project: string | null;
  turns: number;
  prompts: number;
  calls: number;
  superseded: number;
  tokens: number;
  tokens_shown: number;
  tokens_freed: number;
  first: number;
  ended: number | null;
  tokens_by_turn: number[];
  forked_from: Json;
  rewinds: Json[];
  matches: number | null;
  models: string[];
  cost: number | null;
  duration_seconds: number | null;
}

/** What a store holds. */
export interface StoreInfo {
  id: string;
  path: string;
  format_version: number;
  head: number;
  stream_count: number;
  session_count: number;
  segment_count: number;
  log_bytes: number;
  quarantine_bytes: number;
  index: string;
  encrypted: boolean;
  erasing: boolean;
}

/** What a policy and a mode would have cost. */
export interface SimulationRow {
  policy: string;
  mode: string;
  session_count: number;
  request_count: number;
  price_ratio: number;
  price_ratio_with_fetches: number;
  price_ratio_without_cache: number;
  price_unpruned: number;
  tokens_ratio: number;
  tokens_per_turn: number;
  tokens_per_turn_unpruned: number;
  peak_tokens: number;
  peak_tokens_unpruned: number;
  rewrites: number;
  cache_read_share: number;
  needed_again: number;
  blind_edits: number;
  blind_edits_unpruned: number;
  steps_affected: number;
  parts: Record<string, Json>;
  parts_unpruned: Record<string, Json>;
  host_could: Record<string, Json>;
}

/** What a verification found. */
export interface Report {
  schema: string;
  store: string;
  verdict: string;
  head_seq: number;
  head_link: string;
  segments: number;
  frames: number;
  events: number;
  bodies: number;
  bytes: number;
  torn_bytes: number;
  unconfirmed_events: number;
  violations: Json[];
  missing: Json;
  witnesses: Json[];
  saved: Json[];
  contradictions: Json[];
  not_proven: string[];
}

/** Content that an erasure hit. */
export interface ErasedContent {
  seq: number;
  item: string | null;
  session: string;
  why: string;
  bodies: number;
  bytes: number;
}

/** What an erasure did, or would do. */
export interface EraseReport {
  item: string;
  dry_run: boolean;
  recorded: number | null;
  hit: ErasedContent[];
  keys_kept: string[];
  blocks: number;
  segments: number;
  files_removed: number;
}

/** A segment of the log that was packed. */
export interface SealedSegment {
  segment: number;
  bytes_before: number;
  bytes_after: number;
}

/** What packing did. */
export interface SealReport {
  sealed: SealedSegment[];
  left: number;
  damage: string[];
  busy: boolean;
}

/** A copy of a store, and what its verification found. */
export interface Backup {
  schema: string;
  path: string;
  head: number;
  bytes: number;
  report: Report;
}

/** One of several stores. */
export interface StoreMember {
  label: string;
  path: string;
  id: string | null;
}

/** Two of several stores that are one up to a seq, and went on apart. */
export interface StoreFork {
  labels: string[];
  shared: number;
}
