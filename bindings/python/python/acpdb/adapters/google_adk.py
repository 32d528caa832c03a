"""Google ADK: a session service over acpdb.

```python
runner = Runner(agent=agent, app_name="shop", session_service=AcpdbSessionService(store))
```

Events become messages, calls and results, and come back as they were. States of apps, users and sessions are folded from the log,
so several processes share them.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any
from urllib.parse import quote, unquote

from google.adk.events.event import Event
from google.adk.sessions.base_session_service import GetSessionConfig, ListSessionsResponse
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.sessions.session import Session as AdkSession
from google.adk.sessions.state import State

from .. import Entry, Session, Store
from . import _records

HOST = "google-adk"


class AcpdbSessionService(InMemorySessionService):
    """Sessions of the Agent Development Kit in an acpdb store."""

    def __init__(self, store: Store) -> None:
        super().__init__()
        self.store = store
        self._folded: dict[str, int] = {}
        self._lock = asyncio.Lock()

    def session(self, app_name: str, user_id: str, session_id: str) -> Session:
        """The session behind three names, to look into with all that acpdb has."""
        name = "/".join(quote(part, safe="") for part in (app_name, user_id, session_id))
        return self.store.session(name, host=HOST, project=app_name)

    async def create_session(
        self, *, app_name: str, user_id: str, state: dict[str, Any] | None = None, session_id: str | None = None
    ) -> AdkSession:
        async with self._lock:
            await self._catch_up(app_name)
            made = await super().create_session(
                app_name=app_name, user_id=user_id, state=state, session_id=session_id
            )
            kept = {key: value for key, value in (state or {}).items() if not key.startswith(State.TEMP_PREFIX)}
            record = {"op": "create", "state": kept, "time": made.last_update_time}
            entry = _records.kept(record, "adk_session")
            await self.session(app_name, user_id, made.id).submit(entry)
            return made

    async def get_session(
        self, *, app_name: str, user_id: str, session_id: str, config: GetSessionConfig | None = None
    ) -> AdkSession | None:
        async with self._lock:
            await self._catch_up(app_name)
            return await super().get_session(
                app_name=app_name, user_id=user_id, session_id=session_id, config=config
            )

    async def list_sessions(self, *, app_name: str, user_id: str | None = None) -> ListSessionsResponse:
        async with self._lock:
            await self._catch_up(app_name)
            return await super().list_sessions(app_name=app_name, user_id=user_id)

    async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, Any]:
        async with self._lock:
            await self._catch_up(app_name)
            return await super().get_user_state(app_name=app_name, user_id=user_id)

    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        """Takes the session away; it stays in the log."""
        async with self._lock:
            await self._catch_up(app_name)
            if session_id in self.sessions.get(app_name, {}).get(user_id, {}):
                entry = _records.kept({"op": "delete"}, "adk_session")
                await self.session(app_name, user_id, session_id).submit(entry)
            await super().delete_session(app_name=app_name, user_id=user_id, session_id=session_id)

    async def append_event(self, session: AdkSession, event: Event) -> Event:
        if event.partial:
            return event
        async with self._lock:
            await self._catch_up(session.app_name)
            event = await super().append_event(session, event)
            await self.session(session.app_name, session.user_id, session.id).submit(*entries(event))
            return event

    async def _catch_up(self, app_name: str) -> None:
        """Folds what is new in the sessions of an app, in the order of the log."""
        new = await asyncio.to_thread(self._new, app_name)
        for seq, name, record in sorted(new, key=lambda one: one[0]):
            user_id, session_id = (unquote(part) for part in name.split("/")[1:])
            self._fold(app_name, user_id, session_id, record)
            self._folded[name] = seq

    def _new(self, app_name: str) -> list[tuple[int, str, Any]]:
        found: list[tuple[int, str, Any]] = []
        for name in self.store.names():
            if name["host"] == HOST and unquote(name["id"].split("/")[0]) == app_name:
                known = self._folded.get(name["id"], 0)
                if name["head"] > known:
                    records = _records.load(self.store.session(name["id"], host=HOST), known)
                    found += [(seq, name["id"], record) for seq, record in records]
        return found

    def _fold(self, app_name: str, user_id: str, session_id: str, record: dict[str, Any]) -> None:
        # What this service did itself is folded again, and is the same.
        sessions = self.sessions.get(app_name, {}).get(user_id, {})
        match record.get("op"):
            case "create" if session_id not in sessions:
                self._create_session_impl(
                    app_name=app_name, user_id=user_id, state=record["state"], session_id=session_id
                )
                self.sessions[app_name][user_id][session_id].last_update_time = record["time"]
            case "delete":
                sessions.pop(session_id, None)
            case "event" if session_id in sessions:
                event, held = Event.model_validate(record["event"]), sessions[session_id]
                if all(known.id != event.id for known in held.events):
                    held.events.append(event)
                    held.last_update_time = event.timestamp
                self._update(app_name, user_id, held, event)
            case _:
                pass  # Known already, or written by a newer version: kept in the log.

    def _update(self, app_name: str, user_id: str, held: AdkSession, event: Event) -> None:
        """Folds what an event says of states."""
        for key, value in (event.actions.state_delta or {}).items():
            if key.startswith(State.APP_PREFIX):
                self.app_state.setdefault(app_name, {})[key.removeprefix(State.APP_PREFIX)] = value
            elif key.startswith(State.USER_PREFIX):
                users = self.user_state.setdefault(app_name, {})
                users.setdefault(user_id, {})[key.removeprefix(State.USER_PREFIX)] = value
            elif not key.startswith(State.TEMP_PREFIX):
                held.state[key] = value


def entries(event: Event) -> list[Entry]:
    """The facts that an event is; the first bears the event as its record."""
    made: list[Entry] = []
    parts = (event.content.parts if event.content else None) or []
    said = "\n".join(part.text for part in parts if part.text and not part.thought)
    if said:
        made.append(Entry.message("user" if event.author == "user" else "assistant", said))
    for part in parts:
        if part.function_call is not None:
            call = part.function_call
            made.append(Entry.tool_started(call.id or event.id, call.name or "", call.args or {}))
        if part.function_response is not None:
            answer = part.function_response
            output = json.dumps(answer.response, ensure_ascii=False)
            made.append(Entry.tool_finished(answer.id or event.id, output))
    record = _records.dumped({"op": "event", "event": event.model_dump(mode="json", exclude_none=True)})
    first = made[0] if made else Entry.host_record("adk_event")
    return [first.of_record(record), *made[1:]]
