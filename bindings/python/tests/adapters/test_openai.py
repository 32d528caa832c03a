"""The OpenAI Agents SDK over acpdb: the contract of its sessions, and a run with a model that is made up."""

from __future__ import annotations

import asyncio
from typing import Any

import acpdb
from acpdb.adapters.openai import AcpdbSession
from agents.memory import SessionSettings

LONG = "fn main() {}\n" * 100


def call(number: int) -> list[Any]:
    return [
        {"type": "function_call", "call_id": f"c{number}", "name": "read", "arguments": '{"filePath":"a.rs"}'},
        {"type": "function_call_output", "call_id": f"c{number}", "output": LONG},
    ]


def test_items_are_added_popped_limited_and_cleared(store: acpdb.Store) -> None:
    async def main() -> None:
        session = AcpdbSession("s1", store)
        assert await session.get_items() == [] and await session.pop_item() is None
        await session.clear_session()
        said: list[Any] = [
            {"role": "user", "content": "hello"},
            *call(1),
            {"type": "reasoning", "id": "rs_1", "summary": []},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hi."}]},
            {"type": "function_call", "call_id": "c9", "name": "odd", "arguments": "{broken"},
            {"role": "user", "content": "lone \u2028 \\ \" é"},
        ]
        await session.add_items(said)
        await session.add_items([])
        assert await session.get_items() == said
        assert await AcpdbSession("s1", store).get_items(2) == said[-2:]
        assert await session.get_items(0) == []
        # Exactly so many: the SDK itself leaves out what has lost its other half.
        assert await session.get_items(len(said) - 2) == said[2:]
        few = AcpdbSession("s1", store, session_settings=SessionSettings(limit=1))
        assert await few.get_items() == said[-1:] and await few.get_items(2) == said[-2:]
        assert await session.pop_item() == said[-1]
        assert await session.get_items() == said[:-1]
        await session.clear_session()
        assert await session.get_items() == []
        await session.add_items(said[:1])
        assert await session.get_items() == said[:1]
        assert len(session.session.history()) == 6

    asyncio.run(main())


def test_a_pruned_history_keeps_pairs_together(store: acpdb.Store) -> None:
    async def main() -> None:
        session = AcpdbSession("s1", store, pruned=True)
        for number in (1, 2):
            session.session.step(f"t{number}")
            await session.add_items(call(number))
        first, output, second, newest = await session.get_items()
        assert [item["call_id"] for item in (first, output, second, newest)] == ["c1", "c1", "c2", "c2"]
        assert len(output["output"]) < 200 and newest["output"] == LONG
        assert (await AcpdbSession("s1", store).get_items())[1]["output"] == LONG

    asyncio.run(main())
