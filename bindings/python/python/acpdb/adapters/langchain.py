"""LangChain: a chat message history over acpdb.

```python
history = AcpdbChatMessageHistory("run-1", store)
```

Messages become facts, with their calls and results; they come back as they were. With `pruned=True`, results that were
superseded come back as what acpdb shows in their place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import BaseMessage, message_to_dict, messages_from_dict

from .. import Entry, Store
from . import _records

HOST = "langchain"
ROLES = {"human": "user", "ai": "assistant", "system": "system"}


class AcpdbChatMessageHistory(BaseChatMessageHistory):
    """The messages of one conversation, in an acpdb store."""

    def __init__(self, session_id: str, store: Store, *, pruned: bool = False, project: str | None = None) -> None:
        self.session = store.session(session_id, host=HOST, project=project)
        self.pruned = pruned
        self._history = _records.History(self.session, uses)

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]
        """All messages, oldest first."""
        known, view = self._history.read()
        messages = messages_from_dict([record for _, record in known])
        shown = view.replaced() if self.pruned and view is not None else {}
        return [
            message.model_copy(update={"content": shown[seq]}) if seq in shown else message
            for message, (seq, _) in zip(messages, known, strict=True)
        ]

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Appends messages as one commit."""
        if messages:
            self.session.append(*self._entries(messages))

    async def aadd_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Appends messages as one commit."""
        if messages:
            await self.session.submit(*self._entries(messages))

    def clear(self) -> None:
        """Takes all messages out of the history; they stay in the log."""
        self._history.clear()

    def _entries(self, messages: Sequence[BaseMessage]) -> list[Entry]:
        return self._history.entries([message_to_dict(message) for message in messages], entries)


def uses(record: Any) -> list[_records.Use]:
    """What a message says of calls."""
    data = record["data"]
    if record["type"] == "tool":
        return [("end", str(data.get("tool_call_id") or ""))]
    calls = data.get("tool_calls") or [] if record["type"] == "ai" else []
    return [("turn", ""), *[("call", str(call.get("id") or "")) for call in calls]]


def entries(record: Any, names: list[str]) -> list[Entry]:
    """The facts that a message is; the first of them has the message as its record."""
    kind, data = record["type"], record["data"]
    if kind == "tool":
        return [_record(_records.ended(names[0], data.get("content"), failed=data.get("status") == "error"), record)]
    if kind not in ROLES:
        return [_records.kept(record, kind)]
    calls = zip(names, data.get("tool_calls") or [], strict=False)
    started = [_records.started(name, call["name"], call["args"]) for name, call in calls]
    return [_record(_records.said(ROLES[kind], data.get("content")), record), *started]


def _record(made: Entry, record: Any) -> Entry:
    return made.of_record(_records.dumped(record))
