"""OpenAI Agents SDK: a `Session` over acpdb.

```python
result = await Runner.run(agent, "hello", session=AcpdbSession("run-1", store))
```

Items become messages, calls and results; they come back as they were. With `pruned=True`, outputs that were superseded come
back as what acpdb shows in their place.
"""

from __future__ import annotations

import asyncio
from typing import Any, cast

from agents import TResponseInputItem
from agents.memory import SessionABC, SessionSettings

from .. import Entry, Store
from . import _records

HOST = "openai-agents"


class AcpdbSession(SessionABC):
    """The history of one conversation, in an acpdb store."""

    def __init__(
        self,
        session_id: str,
        store: Store,
        *,
        pruned: bool = False,
        project: str | None = None,
        session_settings: SessionSettings | None = None,
    ) -> None:
        self.session_id = session_id
        self.session = store.session(session_id, host=HOST, project=project)
        self.session_settings = session_settings
        self.pruned = pruned
        self._history = _records.History(self.session, uses)

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """The newest `limit` items, oldest first: exactly so many, or all there are. Without it that of `session_settings` holds."""
        return await asyncio.to_thread(self._get_items, limit)

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Appends items as one commit."""
        if items:
            entries = await asyncio.to_thread(self._history.entries, items, entry)
            await self.session.submit(*entries)

    async def pop_item(self) -> TResponseInputItem | None:
        """Takes the last item out of the history; it stays in the log."""
        return cast("TResponseInputItem | None", await asyncio.to_thread(self._history.pop))

    async def clear_session(self) -> None:
        """Takes all items out of the history; they stay in the log."""
        await asyncio.to_thread(self._history.clear)

    def _get_items(self, limit: int | None) -> list[TResponseInputItem]:
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        known, view = self._history.read()
        if limit is not None:
            known = known[max(0, len(known) - limit) :] if limit > 0 else []
        shown = view.replaced() if self.pruned and view is not None else {}
        items = [{**item, "output": shown[seq]} if seq in shown else dict(item) for seq, item in known]
        return cast("list[TResponseInputItem]", items)


def uses(item: Any) -> list[_records.Use]:
    """What an item says of calls."""
    match item.get("type"):
        case "function_call":
            return [("call", str(item.get("call_id") or ""))]
        case "function_call_output":
            return [("end", str(item.get("call_id") or ""))]
        case _:
            return [("turn", "")] if item.get("role") == "user" else []


def entry(item: Any, names: list[str]) -> list[Entry]:
    """The fact that an item is, with the item as its record."""
    kind, role = item.get("type"), item.get("role")
    if kind in (None, "message") and isinstance(role, str):
        made = _records.said(role if role in ("user", "assistant") else "system", item.get("content"))
    elif kind == "function_call":
        made = _records.started(names[0], item.get("name"), item.get("arguments"))
    elif kind == "function_call_output":
        made = _records.ended(names[0], item.get("output"))
    else:
        made = Entry.host_record(_records.whole(str(kind)))
    return [made.of_record(_records.dumped(item))]
