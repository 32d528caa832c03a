"""Google ADK: a session service and a memory service over acpdb.

```python
runner = Runner(
    agent=agent, app_name="shop", session_service=AcpdbSessionService(store), memory_service=AcpdbMemoryService(store)
)
```

Both may also be named in a `services.yaml` of the kit, with a scheme of your own: `acpdb:///srv/agent.db` opens the store in that folder.

Events become messages, calls and results, and come back as they were. What a question costs depends on the session asked for alone:
each session is folded from its own records, and the states of an app and of a user from theirs. Several processes, threads and event
loops may share one store.
"""

from __future__ import annotations

import asyncio
import re
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from threading import Lock
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events.event import Event
from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions.base_session_service import BaseSessionService, GetSessionConfig, ListSessionsResponse
from google.adk.sessions.session import Session as AdkSession
from google.adk.sessions.state import State

from .. import Entry, InvalidError, Session, Store, open as open_store
from . import _records

HOST = "google-adk"
HOST_OF_MEMORY = "google-adk-memory"
#: Sessions that are held in memory; others are read again.
HELD_MAX = 256
#: Most memories that a search gives: tools of the kit put all of them into the prompt.
FOUND_MAX = 10

Record = dict[str, Any]


class Histories:
    """The records of sessions that names of the kit stand for; those that were asked for last are held."""

    def __init__(self, store: Store, host: str) -> None:
        self.store = store
        self._host = host
        self._held: OrderedDict[str, _records.History] = OrderedDict()
        self._lock = Lock()

    def of(self, *names: str) -> _records.History:
        """The records of one session."""
        key = "/".join(quote(part, safe="") for part in names)
        with self._lock:
            history = self._held.pop(key, None)
            if history is None:
                history = _records.History(self.store.session(key, host=self._host, project=names[0]), uses)
            self._held[key] = history
            if len(self._held) > HELD_MAX:
                self._held.popitem(last=False)
            return history

    def named(self, app_name: str, user_id: str | None) -> Iterator[tuple[str, str, str]]:
        """The names of all sessions of an app, or of one of its users."""
        for name in self.store.names():
            parts = tuple(unquote(part) for part in name["id"].split("/"))
            if name["host"] == self._host and len(parts) == 3 and parts[0] == app_name and user_id in (None, parts[1]):
                yield parts


def _store(given: Store | None, uri: str) -> Store:
    """The store that a service is given, or that a URI of the kit names."""
    if given is not None:
        return given
    place = urlsplit(uri)
    if not place.netloc + place.path:
        raise InvalidError(f"{uri!r} names no folder; give a store, or a URI such as acpdb:///srv/agent.db")
    return open_store(unquote(place.netloc + place.path))


class AcpdbSessionService(BaseSessionService):
    """Sessions of the Agent Development Kit in an acpdb store."""

    def __init__(self, store: Store | None = None, *, uri: str = "", **_: Any) -> None:
        self.store = _store(store, uri)
        self._histories = Histories(self.store, HOST)

    def session(self, app_name: str, user_id: str, session_id: str) -> Session:
        """The session behind three names, to look into with all that acpdb has."""
        return self._histories.of(app_name, user_id, session_id).session

    async def create_session(
        self, *, app_name: str, user_id: str, state: dict[str, Any] | None = None, session_id: str | None = None
    ) -> AdkSession:
        return await asyncio.to_thread(self._create, app_name, user_id, state or {}, session_id)

    async def get_session(
        self, *, app_name: str, user_id: str, session_id: str, config: GetSessionConfig | None = None
    ) -> AdkSession | None:
        return await asyncio.to_thread(self._get, app_name, user_id, session_id, config)

    async def list_sessions(self, *, app_name: str, user_id: str | None = None) -> ListSessionsResponse:
        return await asyncio.to_thread(self._list, app_name, user_id)

    async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, Any]:
        return await asyncio.to_thread(self._state, app_name, user_id)

    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        """Takes the session away; it stays in the log."""
        history = self._histories.of(app_name, user_id, session_id)
        gone: Record = {"op": "delete"}
        await asyncio.to_thread(_appended, history, lambda life: [gone] if life else [])

    async def append_event(self, session: AdkSession, event: Event) -> Event:
        if event.partial:
            return event
        names = session.app_name, session.user_id, session.id
        if not await asyncio.to_thread(self._append, names, event):
            return event
        event = await super().append_event(session, event)
        session.last_update_time = event.timestamp
        return event

    # What follows waits for the disk, and runs in threads.

    def _create(self, app_name: str, user_id: str, state: dict[str, Any], session_id: str | None) -> AdkSession:
        session_id = (session_id or "").strip() or str(uuid.uuid4())
        own = {key: value for key, value in state.items() if _scope(key) == ""}
        created: Record = {"op": "create", "state": own, "time": time.time()}

        def decide(life: list[Record]) -> list[Record]:
            if life:
                raise AlreadyExistsError(f"Session with id {session_id} already exists.")
            return [created]

        _appended(self._histories.of(app_name, user_id, session_id), decide)
        self._share(app_name, user_id, state)
        made = self._get(app_name, user_id, session_id, None)
        if made is None:
            raise SessionNotFoundError(f"Session {session_id} was deleted as it was made.")
        return made

    def _get(self, app_name: str, user_id: str, session_id: str, config: GetSessionConfig | None) -> AdkSession | None:
        life = _life(self._histories.of(app_name, user_id, session_id.strip()).read()[0])
        if not life:
            return None
        session = self._folded((app_name, user_id, session_id.strip()), life)
        records = [record["event"] for record in life if record["op"] == "event"]
        if config is not None and config.num_recent_events is not None:
            records = records[max(0, len(records) - config.num_recent_events) :] if config.num_recent_events else []
        events = [Event.model_validate(record) for record in records]
        if config is not None and config.after_timestamp is not None:
            older = [place for place, event in enumerate(events) if event.timestamp < config.after_timestamp]
            events = events[older[-1] + 1 :] if older else events
        session.events = events
        return session

    def _list(self, app_name: str, user_id: str | None) -> ListSessionsResponse:
        found: list[AdkSession] = []
        for names in self._histories.named(app_name, user_id):
            life = _life(self._histories.of(*names).read()[0])
            if life:
                found.append(self._folded(names, life))
        return ListSessionsResponse(sessions=sorted(found, key=lambda one: (one.last_update_time, one.user_id, one.id)))

    def _append(self, names: tuple[str, str, str], event: Event) -> bool:
        told = event.model_dump(mode="json", exclude_none=True)
        delta = (told.get("actions") or {}).get("state_delta") or {}
        # What is temporary is the session's in memory alone.
        for key in [key for key in delta if _scope(key) == State.TEMP_PREFIX]:
            del delta[key]
        record: Record = {"op": "event", "event": told}

        def decide(life: list[Record]) -> list[Record]:
            if not life:
                raise SessionNotFoundError(f"Session {names[2]} not found.")
            # An event that is delivered again is known.
            return [] if record in life else [record]

        is_new = _appended(self._histories.of(*names), decide)
        if is_new:
            self._share(*names[:2], event.actions.state_delta or {})
        return is_new

    def _share(self, app_name: str, user_id: str, delta: dict[str, Any]) -> None:
        """Records what an event says of the states of the app and of the user."""
        for scope, names in ((State.APP_PREFIX, (app_name,)), (State.USER_PREFIX, (app_name, user_id))):
            part = {key.removeprefix(scope): value for key, value in delta.items() if _scope(key) == scope}
            if part:
                self._histories.of(*names).session.append(_records.kept({"op": "state", "delta": part}, "adk_state"))

    def _state(self, *names: str) -> dict[str, Any]:
        """The state of an app, or of a user."""
        state: dict[str, Any] = {}
        for _, record in self._histories.of(*names).read()[0]:
            state.update(record.get("delta") or {})
        return state

    def _folded(self, names: tuple[str, str, str], life: list[Record]) -> AdkSession:
        """A session with its state, and without events."""
        state: dict[str, Any] = {**life[0]["state"]}
        updated = float(life[0]["time"])
        for record in life[1:]:
            event = record["event"]
            delta = (event.get("actions") or {}).get("state_delta") or {}
            state.update({key: value for key, value in delta.items() if _scope(key) == ""})
            updated = float(event["timestamp"])
        app, user = self._state(names[0]), self._state(*names[:2])
        state |= {State.APP_PREFIX + key: value for key, value in app.items()}
        state |= {State.USER_PREFIX + key: value for key, value in user.items()}
        return AdkSession(app_name=names[0], user_id=names[1], id=names[2], state=state, last_update_time=updated)


class AcpdbMemoryService(BaseMemoryService):
    """What was said in sessions that were handed over, found again by its words, by whichever service keeps the sessions themselves."""

    def __init__(self, store: Store | None = None, *, uri: str = "", **_: Any) -> None:
        self.store = _store(store, uri)
        self._histories = Histories(self.store, HOST_OF_MEMORY)

    async def add_session_to_memory(self, session: AdkSession) -> None:
        names = session.app_name, session.user_id, session.id
        await asyncio.to_thread(self._add, names, session.events)

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        await asyncio.to_thread(self._add, (app_name, user_id, session_id or ""), events)

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        return SearchMemoryResponse(memories=await asyncio.to_thread(self._search, app_name, user_id, query))

    async def delete_memory(self, *, app_name: str, user_id: str, memory_id: str | None = None) -> None:
        """Takes a memory away, for good also if its session is handed over again; it stays in the log."""
        await asyncio.to_thread(self._forget, app_name, user_id, memory_id)

    def _add(self, names: tuple[str, str, str], events: Sequence[Event]) -> None:
        said = [event for event in events if event.content and event.content.parts]
        told = [{"op": "event", "event": event.model_dump(mode="json", exclude_none=True)} for event in said]

        def new(known: list[Record]) -> list[Record]:
            there = {_memory_id(record) for record in known}
            return [record for record in told if _memory_id(record) not in there]

        self._decided(names, new)

    def _forget(self, app_name: str, user_id: str, memory_id: str | None) -> None:
        gone: Record = {"op": "forget", "id": memory_id}
        for names in self._histories.named(app_name, user_id):
            self._decided(names, lambda known: [gone] if any(_memory_id(it) == memory_id for it in known) else [])

    def _decided(self, names: tuple[str, str, str], decide: Callable[[list[Record]], list[Record]]) -> None:
        _decided(self._histories.of(*names), lambda known: decide([record for _, record in known]))

    def _search(self, app_name: str, user_id: str, query: str) -> list[MemoryEntry]:
        words = set(re.findall(r"\w+", query.lower()))
        found: list[tuple[int, MemoryEntry]] = []
        for names in self._histories.named(app_name, user_id):
            records = [record for _, record in self._histories.of(*names).read()[0]]
            gone = {record["id"] for record in records if record.get("op") == "forget"}
            for record in records:
                if record.get("op") != "event" or _memory_id(record) in gone:
                    continue
                text = " ".join(part["text"] for part in _parts(record) if part.get("text")).lower()
                there = set(re.findall(r"\w+", text))
                # Some scripts have no blanks between words.
                count = sum(word in there or (not word.isascii() and word in text) for word in words)
                if count:
                    found.append((count, _memory(Event.model_validate(record["event"]))))
        found.sort(key=lambda one: -one[0])
        return [memory for _, memory in found[:FOUND_MAX]]


def _memory_id(record: Record) -> str:
    return str(record["event"].get("id") if record.get("op") == "event" else record.get("id"))


def _memory(event: Event) -> MemoryEntry:
    assert event.content is not None
    told = datetime.fromtimestamp(event.timestamp).isoformat()
    return MemoryEntry(id=event.id, content=event.content, author=event.author, timestamp=told)


def _scope(key: str) -> str:
    return next((prefix for prefix in (State.APP_PREFIX, State.USER_PREFIX, State.TEMP_PREFIX) if key.startswith(prefix)), "")


def _life(known: list[tuple[int, Any]]) -> list[Record]:
    """The records of a session since it was made; none if it is not, or was deleted."""
    life: list[Record] = []
    for _, record in known:
        match record.get("op"):
            case "create" if not life:
                life = [record]
            case "delete":
                life = []
            case "event" if life:
                life.append(record)
            case _:
                pass  # Written by a newer version: kept in the log.
    return life


def _appended(history: _records.History, decide: Callable[[list[Record]], list[Record]]) -> bool:
    """Appends what is decided of the session as it is."""
    return _decided(history, lambda known: decide(_life(known)))


def _decided(history: _records.History, decide: Callable[[list[tuple[int, Any]]], list[Record]]) -> bool:
    """Appends what is decided of all records."""

    def made() -> tuple[int, list[Entry]]:
        known, view = history.read()
        records = decide(known)
        return view.seq if view is not None else 0, history.entries(records, entries) if records else []

    with history.lock:
        return _records.decided(history.session, made) is not None


def _parts(record: Any) -> Iterator[dict[str, Any]]:
    if record.get("op") == "event":
        yield from ((record["event"].get("content") or {}).get("parts")) or []


def uses(record: Any) -> list[_records.Use]:
    """What an event says of calls."""
    made: list[_records.Use] = []
    for part in _parts(record):
        call, end = part.get("function_call"), part.get("function_response")
        if call is not None:
            made.append(("call", str(call.get("id") or "")))
        elif end is not None:
            made.append(("end", str(end.get("id") or "")))
    return made or [("turn", "")]


def entries(record: Any, names: list[str]) -> list[Entry]:
    """The facts that a record is; the first bears it."""
    made: list[Entry] = []
    said = [part["text"] for part in _parts(record) if part.get("text") and not part.get("thought")]
    if said:
        made.append(_records.said("user" if record["event"].get("author") == "user" else "assistant", said))
    rest = iter(names)
    for part in _parts(record):
        call, end = part.get("function_call"), part.get("function_response")
        if call is not None:
            made.append(_records.started(next(rest), call.get("name"), call.get("args")))
        elif end is not None:
            answer = end.get("response")
            # The kit puts what is no dict into one.
            is_wrapped = isinstance(answer, dict) and list(answer) == ["result"] and isinstance(answer["result"], str)
            made.append(_records.ended(next(rest), answer["result"] if is_wrapped else answer))
    first = made[0] if made else Entry.host_record(f"adk_{record['op']}")
    return [first.of_record(_records.dumped(record)), *made[1:]]
