"""Claude Agent SDK: a `SessionStore` over acpdb.

```python
options = ClaudeAgentOptions(session_store=AcpdbSessionStore(store))
```

Transcripts are read as they come: messages, calls, results and todo lists become facts, so that everything of acpdb works on
them; `load` gives the lines back as they were. Deleting a session leaves its branch: the bytes stay in the log until they are
erased.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from threading import Lock
from typing import Any
from urllib.parse import quote, unquote

from claude_agent_sdk import SessionKey, SessionStore, fold_session_summary
from claude_agent_sdk.types import (
    SessionListSubkeysKey,
    SessionStoreEntry,
    SessionStoreListEntry,
    SessionSummaryEntry,
)

from .. import Session, Store
from . import _records

HOST = "claude-code"
#: A record of our own: a session that was deleted begins anew, and what was known before is new again.
_BEGUN = "acpdb_begun"


def _name(key: Mapping[str, Any]) -> str:
    """The name of a session: project, session and subpath, each quoted."""
    parts = [key["project_key"], key["session_id"], *filter(None, [key.get("subpath")])]
    return "/".join(quote(part, safe="") for part in parts)


class AcpdbSessionStore(SessionStore):
    """Sessions of the Claude Agent SDK in an acpdb store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._prefixes: dict[str, str] = {}
        self._summaries: dict[str, tuple[int, SessionSummaryEntry | None]] = {}
        self._lock = Lock()

    def session(self, key: Mapping[str, Any]) -> Session:
        """The session behind a key, to look into with all that acpdb has."""
        parent = _name({**key, "subpath": None}) if key.get("subpath") else None
        return self._store.session(_name(key), host=HOST, project=key["project_key"], parent=parent)

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        await asyncio.to_thread(self._append, key, entries)

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        return await asyncio.to_thread(self._load, key)

    async def list_sessions(self, project_key: str) -> list[SessionStoreListEntry]:
        return await asyncio.to_thread(self._list_sessions, project_key)

    async def list_session_summaries(self, project_key: str) -> list[SessionSummaryEntry]:
        return await asyncio.to_thread(self._list_summaries, project_key)

    async def delete(self, key: SessionKey) -> None:
        await asyncio.to_thread(self._delete, key)

    async def list_subkeys(self, key: SessionListSubkeysKey) -> list[str]:
        return await asyncio.to_thread(self._list_subkeys, key)

    # What follows waits for the disk, and runs in threads.

    def _append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        if not entries:
            return
        session, name = self.session(key), _name(key)
        with self._lock:
            prefix = self._prefixes.get(name)
            if prefix is None:
                prefix = self._prefixes[name] = self._prefix(session)
        lines = "\n".join(_records.dumped(entry) for entry in entries)
        session.append_lines(HOST, lines.encode(), prefix=prefix)

    def _prefix(self, session: Session) -> str:
        """What makes facts of this life of a session differ from those of an earlier one that was deleted."""
        records = _records.load(session)
        if records:
            first = records[0][1]
            return str(first[_BEGUN]) if _BEGUN in first else ""
        if all(name["id"] != session.key for name in self._names()):
            return ""
        prefix = f"after-{self._store.head()}:"
        session.append(_records.kept({_BEGUN: prefix}, "begun"))
        return prefix

    def _load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        return [entry for _, entry in self._entries(key)] or None

    def _entries(self, key: Mapping[str, Any], after: int = 0) -> list[tuple[int, SessionStoreEntry]]:
        known = _records.load(self.session(key), after)
        return [(seq, entry) for seq, entry in known if _BEGUN not in entry]

    def _names(self) -> list[Any]:
        return [name for name in self._store.names() if name["host"] == HOST]

    def _sessions(self, project_key: str) -> list[tuple[str, int, int]]:
        """Sessions of a project that hold anything: id, head, and when that was recorded in milliseconds."""
        found: list[tuple[str, int, int]] = []
        for name in self._names():
            parts = name["id"].split("/")
            if len(parts) != 2 or unquote(parts[0]) != project_key:
                continue
            key = {"project_key": project_key, "session_id": unquote(parts[1])}
            event = self._store.event(name["head"])
            if event is not None and self._entries(key):
                found.append((key["session_id"], name["head"], event["recorded_at"] // 1000))
        return found

    def _list_sessions(self, project_key: str) -> list[SessionStoreListEntry]:
        return [{"session_id": id, "mtime": time} for id, _, time in self._sessions(project_key)]

    def _list_summaries(self, project_key: str) -> list[SessionSummaryEntry]:
        summaries: list[SessionSummaryEntry] = []
        for session_id, _, time in self._sessions(project_key):
            key: SessionKey = {"project_key": project_key, "session_id": session_id}
            with self._lock:
                last, summary = self._summaries.get(_name(key), (0, None))
                new = self._entries(key, last)
                if new:
                    summary = fold_session_summary(summary, key, [entry for _, entry in new])
                    self._summaries[_name(key)] = (new[-1][0], summary)
            if summary is not None:
                summaries.append({**summary, "mtime": time})
        return summaries

    def _delete(self, key: SessionKey) -> None:
        keys: list[SessionKey] = [key]
        if not key.get("subpath"):
            subkeys = self._list_subkeys({"project_key": key["project_key"], "session_id": key["session_id"]})
            keys += [{**key, "subpath": subpath} for subpath in subkeys]
        for one in keys:
            _records.clear(self.session(one))
            with self._lock:
                self._prefixes.pop(_name(one), None)
                self._summaries.pop(_name(one), None)

    def _list_subkeys(self, key: SessionListSubkeysKey) -> list[str]:
        beginning = _name({**key, "subpath": None}) + "/"
        found: list[str] = []
        for name in self._names():
            if name["id"].startswith(beginning):
                subpath = unquote(name["id"][len(beginning) :])
                if self._entries({**key, "subpath": subpath}):
                    found.append(subpath)
        return found
