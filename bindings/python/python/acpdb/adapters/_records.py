"""Records of a framework on the active branch of a session: what all adapters share."""

from __future__ import annotations

import json
from typing import Any

from .. import Entry, NotFoundError, Session


def dumped(value: Any) -> str:
    """A record as it is kept: compact, with its own characters."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def load(session: Session, after: int = 0) -> list[tuple[int, Any]]:
    """The records, oldest first, each with its seq; nothing for a session that is not there yet."""
    try:
        return [(seq, json.loads(raw)) for seq, raw in session.records(after=after)]
    except NotFoundError:
        return []


def clear(session: Session) -> None:
    """Goes back to before the first record. What was there stays in the log."""
    known = load(session)
    if known:
        session.rewind(known[0][0] - 1)


def pop(session: Session) -> Any | None:
    """Goes back to before the last record, and gives it; None if there is none."""
    known = load(session)
    if not known:
        return None
    seq, record = known[-1]
    session.rewind(seq - 1)
    return record


def pruned_outputs(session: Session) -> dict[str, str]:
    """What the context shows of outputs that it does not show whole, by the id of their call."""
    shown: dict[str, str] = {}
    for item in session.context()["items"]:
        call, output = item["call"], item["output"]
        if call is not None and output is not None and output["state"] != "whole" and output["text"]:
            shown[call] = output["text"]
    return shown


def kept(record: Any, what: str) -> Entry:
    """A record that says nothing to the context."""
    return Entry.host_record(what).of_record(dumped(record))


def text(content: Any) -> str:
    """The text of a content: of its parts that have one, in order."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = [part if isinstance(part, str) else part.get("text") for part in content]
        return "\n".join(str(part) for part in parts if part)
    return "" if content is None else dumped(content)
