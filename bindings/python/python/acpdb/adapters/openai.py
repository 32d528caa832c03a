"""OpenAI Agents SDK: a `Session` over acpdb.

```python
result = await Runner.run(agent, "hello", session=AcpdbSession("run-1", store))
```

Items become messages, calls and results; they come back as they were. With `pruned=True`, outputs that were superseded come
back as what acpdb shows in their place; calls and their outputs stay together.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any, cast

from agents import TResponseInputItem
from agents.memory.session import SessionABC

from .. import Entry, Store
from . import _records

HOST = "openai-agents"


class AcpdbSession(SessionABC):
    """The history of one conversation, in an acpdb store."""

    def __init__(self, session_id: str, store: Store, *, pruned: bool = False, project: str | None = None) -> None:
        self.session_id = session_id
        self.session = store.session(session_id, host=HOST, project=project)
        self.pruned = pruned

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """The newest `limit` items, oldest first; outputs whose call is not among them are left out."""
        return await asyncio.to_thread(self._get_items, limit)

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Appends items as one commit."""
        if items:
            entries = [entry(cast("dict[str, Any]", item)) for item in items]
            await self.session.submit(*entries)

    async def pop_item(self) -> TResponseInputItem | None:
        """Takes the last item out of the history; it stays in the log."""
        return cast("TResponseInputItem | None", await asyncio.to_thread(_records.pop, self.session))

    async def clear_session(self) -> None:
        """Takes all items out of the history; they stay in the log."""
        await asyncio.to_thread(_records.clear, self.session)

    def _get_items(self, limit: int | None) -> list[TResponseInputItem]:
        items: list[dict[str, Any]] = [item for _, item in _records.load(self.session)]
        if limit is not None:
            items = items[max(0, len(items) - limit) :] if limit > 0 else []
            calls = {item.get("call_id") for item in items if not is_output(item)}
            items = [item for item in items if not is_output(item) or item.get("call_id") in calls]
        if self.pruned and items:
            shown = _records.pruned_outputs(self.session)
            items = [
                {**item, "output": shown[item["call_id"]]} if is_output(item) and item["call_id"] in shown else item
                for item in items
            ]
        return cast("list[TResponseInputItem]", items)


def is_output(item: dict[str, Any]) -> bool:
    """Whether an item is the output of a call."""
    return str(item.get("type", "")).endswith("_output") and "call_id" in item


def entry(item: dict[str, Any]) -> Entry:
    """The fact that an item is, with the item as its record."""
    kind, raw = item.get("type"), _records.dumped(item)
    if kind in (None, "message") and isinstance(item.get("role"), str):
        role = {"developer": "system"}.get(item["role"], item["role"])
        made = Entry.message(role, _records.text(item.get("content")))
    elif kind == "function_call":
        made = Entry.tool_started(item["call_id"], item["name"], params(item.get("arguments")))
    elif kind == "function_call_output":
        made = Entry.tool_finished(item["call_id"], _records.text(item.get("output")))
    else:
        made = Entry.host_record(str(kind))
    return made.of_record(raw)


def params(arguments: Any) -> Any:
    """Arguments as the model wrote them; what is no JSON as a text in an object."""
    try:
        json.loads(arguments)
    except (TypeError, ValueError):
        return {"arguments": arguments}
    return arguments
