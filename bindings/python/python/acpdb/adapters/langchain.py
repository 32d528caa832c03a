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
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ToolMessage,
    message_to_dict,
    messages_from_dict,
)

from .. import Entry, Store
from . import _records

HOST = "langchain"
ROLES = {"human": "user", "ai": "assistant", "system": "system"}


class AcpdbChatMessageHistory(BaseChatMessageHistory):
    """The messages of one conversation, in an acpdb store."""

    def __init__(self, session_id: str, store: Store, *, pruned: bool = False, project: str | None = None) -> None:
        self.session = store.session(session_id, host=HOST, project=project)
        self.pruned = pruned

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]
        """All messages, oldest first."""
        messages = messages_from_dict([record for _, record in _records.load(self.session)])
        shown = _records.pruned_outputs(self.session) if self.pruned and messages else {}
        return [
            message.model_copy(update={"content": shown[message.tool_call_id]})
            if isinstance(message, ToolMessage) and message.tool_call_id in shown
            else message
            for message in messages
        ]

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Appends messages as one commit."""
        if messages:
            self.session.append(*[entry for message in messages for entry in entries(message)])

    async def aadd_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Appends messages as one commit."""
        if messages:
            await self.session.submit(*[entry for message in messages for entry in entries(message)])

    def clear(self) -> None:
        """Takes all messages out of the history; they stay in the log."""
        _records.clear(self.session)


def entries(message: BaseMessage) -> list[Entry]:
    """The facts that a message is; the first of them has the message as its record."""
    raw: dict[str, Any] = message_to_dict(message)
    if isinstance(message, ToolMessage):
        said = _records.text(message.content)
        failed = message.status == "error"
        made = [Entry.tool_finished(message.tool_call_id, said, outcome="failed" if failed else None)]
    elif message.type in ROLES:
        made = [Entry.message(ROLES[message.type], _records.text(message.content))]
    else:
        made = [Entry.host_record(message.type)]
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    started = [Entry.tool_started(call["id"] or "", call["name"], call["args"]) for call in calls]
    return [made[0].of_record(_records.dumped(raw)), *started]
