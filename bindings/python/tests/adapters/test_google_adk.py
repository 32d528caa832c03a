"""Google ADK with its own runner and a made-up model; two services on one store."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path

import acpdb
import pytest
from acpdb.adapters.google_adk import AcpdbMemoryService, AcpdbSessionService
from google.adk.cli import service_registry
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.sessions.base_session_service import GetSessionConfig
from google.genai import types

KEY = {"app_name": "shop/1", "user_id": "u 1"}


def said(author: str, *parts: types.Part, delta: dict[str, object] | None = None) -> Event:
    content = types.Content(role="user" if author == "user" else "model", parts=[*parts])
    return Event(author=author, invocation_id="i1", content=content, actions=EventActions(state_delta=delta or {}))


def test_events_and_states_are_shared_and_understood(store: acpdb.Store) -> None:
    async def main() -> None:
        first, second = AcpdbSessionService(store), AcpdbSessionService(store)
        session = await first.create_session(**KEY, session_id="s1", state={"a": 1, "user:name": "Ada", "temp:x": 0})
        with pytest.raises(AlreadyExistsError):
            await second.create_session(**KEY, session_id="s1")
        call = types.Part(function_call=types.FunctionCall(id="c1", name="read", args={"filePath": "a.rs"}))
        answer = types.Part(function_response=types.FunctionResponse(id="c1", name="read", response={"text": "fn main() {}"}))
        events = [
            said("user", types.Part(text="why is the build red?"), delta={"a": 2, "app:mode": "fast", "temp:y": 1}),
            said("agent", call),
            said("agent", answer, types.Part(text="It is the linker."), delta={"user:name": "Bob"}),
        ]
        for event in events:
            await first.append_event(session, event)
        found = await second.get_session(**KEY, session_id="s1")
        assert found is not None
        assert [event.id for event in found.events] == [event.id for event in events]
        assert found.events[1].content == events[1].content
        assert found.state == {"a": 2, "app:mode": "fast", "user:name": "Bob"}
        mine = await first.get_session(**KEY, session_id="s1")
        assert mine is not None and mine.state == found.state and len(mine.events) == 3
        assert await second.get_user_state(**KEY) == {"name": "Bob"}
        newest = await second.get_session(**KEY, session_id="s1", config=GetSessionConfig(num_recent_events=1))
        assert newest is not None and [event.id for event in newest.events] == [events[2].id]
        rows = first.session("shop/1", "u 1", "s1").history()
        assert [row["call"] for row in rows if row["call"]] == ["c1"]
        await second.append_event(found, said("user", types.Part(text="thanks")))
        await first.create_session(**KEY, session_id="s2")
        assert {one.id for one in (await second.list_sessions(app_name="shop/1")).sessions} == {"s1", "s2"}
        assert (await second.list_sessions(app_name="shop/1", user_id="other")).sessions == []
        await first.delete_session(**KEY, session_id="s1")
        assert await second.get_session(**KEY, session_id="s1") is None
        assert len(first.session("shop/1", "u 1", "s1").records()) == 6
        again = await second.create_session(**KEY, session_id="s1")
        assert again.events == [] and again.state["user:name"] == "Bob"

    asyncio.run(main())
    assert store.verify(deep=True)["verdict"] == "sound"


def test_threads_with_loops_of_their_own_share_a_service(store: acpdb.Store) -> None:
    """The runner's synchronous form makes an event loop for each call; two of three such threads failed, and one hung."""
    service = AcpdbSessionService(store)
    asyncio.run(service.create_session(**KEY, session_id="s1"))

    async def run(number: int) -> None:
        session = await service.get_session(**KEY, session_id="s1")
        assert session is not None
        for turn in range(5):
            await service.append_event(session, said("agent", types.Part(text=f"{number}.{turn}"), delta={f"n{number}": turn}))

    with ThreadPoolExecutor(3) as pool:
        for done in [pool.submit(asyncio.run, run(number)) for number in range(3)]:
            done.result(60)
    found = asyncio.run(AcpdbSessionService(store).get_session(**KEY, session_id="s1"))
    assert found is not None and len(found.events) == 15 and found.state == {f"n{number}": 4 for number in range(3)}


def test_of_services_that_make_one_session_one_does(store: acpdb.Store) -> None:
    def make(number: int) -> bool:
        try:
            asyncio.run(AcpdbSessionService(store).create_session(**KEY, session_id="s1", state={"n": number}))
            return True
        except AlreadyExistsError:
            return False

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(make, range(8))) == 1


def test_values_that_json_has_no_form_for_are_kept_as_texts(store: acpdb.Store) -> None:
    async def main() -> None:
        service = AcpdbSessionService(store)
        state = {"far": float("inf"), "day": datetime(2026, 1, 1), "cut": "\ud83d"}
        await service.create_session(**KEY, session_id="s1", state=state)
        found = await AcpdbSessionService(store).get_session(**KEY, session_id="s1")
        assert found is not None and found.state == {"far": "inf", "day": "2026-01-01 00:00:00", "cut": "\ud83d"}

    asyncio.run(main())


def test_what_was_said_is_found_by_its_words_in_a_later_session(store: acpdb.Store) -> None:
    async def main() -> None:
        sessions, first, second = AcpdbSessionService(store), AcpdbMemoryService(store), AcpdbMemoryService(store)
        session = await sessions.create_session(**KEY, session_id="s1")
        for text in ("the build is red since Monday", "Monday was a holiday", "私はPythonを使う"):
            await sessions.append_event(session, said("user", types.Part(text=text)))
        for service in (first, second):
            await service.add_session_to_memory(session)

        async def found(query: str, **who: str) -> list[str | None]:
            parts = [memory.content.parts for memory in (await second.search_memory(**{**KEY, **who}, query=query)).memories]
            return [part[0].text for part in parts if part]

        assert await found("Is the BUILD red on Monday?") == ["the build is red since Monday", "Monday was a holiday"]
        assert await found("使う") == ["私はPythonを使う"]
        assert await found("linker") == [] == await found("Monday", user_id="another")
        await first.add_events_to_memory(**KEY, events=[said("agent", types.Part(text="It is the linker."))])
        assert await found("linker") == ["It is the linker."]
        [memory] = (await first.search_memory(**KEY, query="holiday")).memories
        await first.delete_memory(**KEY, memory_id=memory.id)
        await second.add_session_to_memory(session)
        assert await found("holiday") == []

    asyncio.run(main())


def test_services_are_named_by_a_uri(tmp_path: Path) -> None:
    registry = service_registry.ServiceRegistry()
    module = "acpdb.adapters.google_adk"
    each = [{"scheme": "acpdb", "type": kind.lower(), "class": f"{module}.Acpdb{kind}Service"} for kind in ("Session", "Memory")]
    service_registry._register_services_from_yaml_config({"services": each}, registry)
    uri = f"acpdb://{tmp_path}/with%20blank"
    session = registry.create_session_service(uri, agents_dir=str(tmp_path))
    memory = registry.create_memory_service(uri, agents_dir=str(tmp_path))
    assert isinstance(session, AcpdbSessionService) and isinstance(memory, AcpdbMemoryService)
    assert Path(session.store.path) == tmp_path / "with blank" == Path(memory.store.path)
    session.store.close(), memory.store.close()
    with pytest.raises(acpdb.InvalidError, match="names no folder"):
        AcpdbSessionService(uri="acpdb://")
