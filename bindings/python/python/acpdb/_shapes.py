"""Shapes of answers: the names that the program's JSON has."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal, TypedDict, Union

At = Union[int, str, datetime]
"""A point in time: a seq, a text such as `"t3"`, `"-2t"`, `"@compact"` or `"2 hours ago"`, or a datetime."""

Role = Literal["system", "user", "assistant", "tool"]
RequestFormat = Literal["anthropic", "openai", "responses", "gemini"]
Format = Literal["anthropic", "openai", "responses", "gemini", "markdown", "text"]
ExportFormat = Literal["anthropic", "openai", "responses", "gemini", "markdown", "text", "html", "otlp"]
Selection = Literal["current", "served", "whole", "recorded", "history"]
Mode = Literal["append_only", "batched", "eager"]
Json = Any
"""All that `json` writes and reads."""


class ItemRow(TypedDict):
    """An item in a line."""

    item: str
    seq: int
    session: str
    turn: int
    kind: str
    role: str
    tool: str | None
    call: str | None
    hash: str | None
    status: str | None
    keys: list[str]
    state: str
    cause: str | None
    rule: str | None
    superseded_by: str | None
    in_context: bool
    pinned: bool
    tokens: int
    tokens_shown: int


class FaceText(TypedDict):
    """One face of an item as the model sees it."""

    state: str
    text: str | None
    problem: str | None
    tokens: int
    tokens_shown: int


class ContextItem(ItemRow):
    """An item of the context with its texts."""

    input: FaceText | None
    output: FaceText | None


class ContextMemory(TypedDict):
    """A memory item that holds."""

    id: str
    seq: int
    kind: str
    category: str
    key: str | None
    value: str | None
    confidence: float


class Context(TypedDict):
    """The current context."""

    session: str
    host: str
    title: str | None
    project: str | None
    at: int
    turn: int
    layer: str
    policy: str
    tokens_shown: int
    tokens_whole: int
    tokens_freed: int
    tokens_by_turn: list[int]
    item_count: int
    hidden_count: int
    items: list[ContextItem]
    memory: list[ContextMemory]


class EdgeRow(TypedDict):
    """That one item superseded another, and by which rule."""

    old: str
    new: str | None
    rule: str
    key: str | None
    seq: int
    turn: int
    released: bool
    tokens_freed: int


class _ServedOptional(TypedDict, total=False):
    served: list[dict[str, Json]]


class Chain(_ServedOptional):
    """An item and what superseded it, oldest first."""

    item: str
    session: str
    at: int
    items: list[ItemRow]
    edges: list[EdgeRow]
    tokens_freed: int
    is_cut: bool


class Explained(ItemRow, _ServedOptional):
    """Why an item is in the context, or is not."""

    at: int
    visible: bool
    sentences: list[str]
    edge: EdgeRow | None
    edges_to_newer: list[EdgeRow]
    edges_to_older: list[EdgeRow]
    protection: Json
    stale: int | None
    policy: str


class Todos(TypedDict):
    """The todo list; `items` have the host's own fields besides `content`, `status` and `position`."""

    session: str
    seq: int | None
    turn: int | None
    items: list[dict[str, Json]]
    reminder_due: Json


class MemoryRow(TypedDict):
    """A memory item and where it stands."""

    id: str
    item: str
    stream: str
    kind: str
    category: str
    key: str | None
    subject: str | None
    value: str | None
    rationale: str | None
    alternatives: list[str]
    related_files: list[str]
    confidence: float
    confirmed: float
    lifespan: str
    created: str
    reinforced: str | None
    source: str
    standing: str
    shadowed: bool
    superseded_by: list[str]
    superseded_at: str | None
    supersedes: list[str]
    status: str | None
    extra: Json


class MemoryReceipt(TypedDict):
    """What a command on memory recorded."""

    id: str
    stream: str
    item: str | None
    last_seq: int


class _HitOptional(TypedDict, total=False):
    row: ItemRow


class Hit(_HitOptional):
    """An item whose texts match."""

    item: str
    seq: int
    session: str
    host: str
    time: int | None
    face: str
    visible: bool
    seen: str
    kind: str
    matches: int
    excerpts: list[dict[str, Json]]


class Scanned(TypedDict):
    """What was gone through."""

    events: int
    bodies: int
    bytes: int


class Found(TypedDict):
    """What a search found."""

    items: list[Hit]
    scanned: Scanned


class ActReply(TypedDict):
    """What a command on the context did."""

    reply: str
    last_seq: int | None
    hidden: list[str]
    shown: list[str]


class OpenCall(TypedDict):
    """A call that was started and has not ended."""

    seq: int
    call: str
    tool: str


class Resumed(TypedDict):
    """What a session's last host left open."""

    is_new: bool
    calls: list[OpenCall]
    messages: list[str]


class EventRow(TypedDict):
    """An event in a line."""

    seq: int
    kind: str
    stream: str
    host: str | None
    session: str | None
    scope: str | None
    recorded_at: int


class Commit(TypedDict):
    """What became durable together."""

    last_seq: int
    recorded_at: int
    events: list[EventRow]


class Finding(TypedDict):
    """What a provider would refuse."""

    rule: str
    pointer: str
    expected: str
    found: str
    says: str


class StreamName(TypedDict):
    """A session, project or user by its names."""

    stream: str
    scope: str
    host: str
    id: str
    title: str | None
    parent: str | None
    head: int
    began: int | None


class SessionRow(StreamName):
    """A session in a line."""

    project: str | None
    turns: int
    prompts: int
    calls: int
    superseded: int
    tokens: int
    tokens_shown: int
    tokens_freed: int
    first: int
    ended: int | None
    tokens_by_turn: list[int]
    forked_from: Json
    rewinds: list[Json]
    matches: int | None
    models: list[str]
    cost: float | None
    duration_seconds: int | None


class StoreInfo(TypedDict):
    """What a store holds."""

    id: str
    path: str
    format_version: int
    head: int
    stream_count: int
    session_count: int
    segment_count: int
    log_bytes: int
    quarantine_bytes: int
    index: str
    encrypted: bool
    erasing: bool


class SimulationRow(TypedDict):
    """What a policy and a mode would have cost."""

    policy: str
    mode: str
    session_count: int
    request_count: int
    price_ratio: float
    price_ratio_with_fetches: float
    price_ratio_without_cache: float
    price_unpruned: float
    tokens_ratio: float
    tokens_per_turn: float
    tokens_per_turn_unpruned: float
    peak_tokens: int
    peak_tokens_unpruned: int
    rewrites: int
    cache_read_share: float
    needed_again: float
    blind_edits: float
    blind_edits_unpruned: float
    steps_affected: float
    parts: dict[str, Json]
    parts_unpruned: dict[str, Json]
    host_could: dict[str, Json]


class Report(TypedDict):
    """What a verification found."""

    schema: str
    store: str
    verdict: str
    head_seq: int
    head_link: str
    segments: int
    frames: int
    events: int
    bodies: int
    bytes: int
    torn_bytes: int
    unconfirmed_events: int
    violations: list[Json]
    missing: Json
    witnesses: list[Json]
    saved: list[Json]
    contradictions: list[Json]
    not_proven: list[str]


class ErasedContent(TypedDict):
    """Content that an erasure hit."""

    seq: int
    item: str | None
    session: str
    why: str
    bodies: int
    bytes: int


class EraseReport(TypedDict):
    """What an erasure did, or would do."""

    item: str
    dry_run: bool
    recorded: int | None
    hit: list[ErasedContent]
    keys_kept: list[str]
    blocks: int
    segments: int
    files_removed: int


class SealedSegment(TypedDict):
    """A segment of the log that was packed."""

    segment: int
    bytes_before: int
    bytes_after: int


class SealReport(TypedDict):
    """What packing did."""

    sealed: list[SealedSegment]
    left: int
    damage: list[str]
    busy: bool


class Backup(TypedDict):
    """A copy of a store, and what its verification found."""

    schema: str
    path: str
    head: int
    bytes: int
    report: Report


class StoreMember(TypedDict):
    """One of several stores."""

    label: str
    path: str
    id: str | None


class StoreFork(TypedDict):
    """Two of several stores that are one up to a seq, and went on apart."""

    labels: list[str]
    shared: int
