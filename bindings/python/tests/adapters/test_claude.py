"""The Claude Agent SDK's own suite, and what acpdb adds."""

from __future__ import annotations

import asyncio
from pathlib import Path

import acpdb
import pytest
from acpdb.adapters.claude import AcpdbSessionStore
from claude_agent_sdk.testing import run_session_store_conformance

KEY = {"project_key": "proj", "session_id": "11111111-2222-3333-4444-555555555555"}


def line(number: int, role: str, content: object, **more: object) -> dict[str, object]:
    return {
        "type": role,
        "uuid": f"00000000-0000-0000-0000-{number:012}",
        "sessionId": KEY["session_id"],
        "cwd": "/w",
        "timestamp": f"2026-01-01T00:00:{number:02}.000Z",
        "message": {"role": role, "content": content, "id": f"msg_{number}", **more},
    }


def reads(number: int) -> list[dict[str, object]]:
    call = {"type": "tool_use", "id": f"toolu_{number}", "name": "Read", "input": {"file_path": "/w/main.rs"}}
    output = {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": "fn main() {}\n" * 100}
    return [line(number, "assistant", [call]), line(number + 1, "user", [output])]


@pytest.mark.parametrize("place", ["here", "beyond"])
def test_all_contracts_hold(tmp_path: Path, place: str) -> None:
    numbers = iter(range(1000))
    stores: list[acpdb.Store] = []

    def make() -> AcpdbSessionStore:
        name = str(next(numbers))
        if place == "here":
            stores.append(acpdb.open(tmp_path / name))
        else:
            url = f"file://{tmp_path}/disk"
            stores.append(acpdb.open_remote(url, name, tmp_path / name, passphrase="0123456789", any_file_system=True))
        return AcpdbSessionStore(stores[-1])

    asyncio.run(run_session_store_conformance(make))
    assert len(stores) == 15, "one for each contract, and one that is looked at"
    for store in stores:
        assert store.verify(deep=True)["verdict"] == "sound"
        store.close()


def test_lines_come_back_and_are_understood(store: acpdb.Store) -> None:
    async def main() -> None:
        sdk = AcpdbSessionStore(store)
        said = [line(1, "user", "why is the build red?"), *reads(2), *reads(4)]
        title = {"type": "custom-title", "customTitle": "Red", "sessionId": KEY["session_id"]}
        await sdk.append(KEY, said[:2])
        await sdk.append(KEY, [*said[1:], title])  # a batch that is told again, and more
        await sdk.append(KEY, [title])  # a line without an id is not known again
        assert await sdk.load(KEY) == [*said, title, title]
        session = sdk.session(KEY)
        first, second = session.history(tool="Read")
        assert (first["rule"], second["rule"]) == ("repeat", None)
        assert session.view("t1").is_visible(first["item"])
        # A session that was deleted begins anew.
        await sdk.delete(KEY)
        assert await sdk.load(KEY) is None
        await sdk.append(KEY, said)
        await AcpdbSessionStore(store).append(KEY, said)
        assert await sdk.load(KEY) == said
        assert len(session.context()["items"]) == 3

    asyncio.run(main())


def test_halves_of_surrogate_pairs_are_kept(store: acpdb.Store) -> None:
    """Lines that a tool cut in a character are usual; one of them lost its whole batch."""

    async def main() -> None:
        sdk = AcpdbSessionStore(store)
        said = [line(1, "user", "whole é"), line(2, "user", "cut \ud83d"), line(3, "user", [{"type": "text", "text": "\udc00"}])]
        await sdk.append(KEY, said)
        assert await sdk.load(KEY) == said
        assert len(sdk.session(KEY).context()["items"]) == 3

    asyncio.run(main())


def test_subagents_in_the_file_of_their_session_keep_its_order(store: acpdb.Store) -> None:
    async def main() -> None:
        sdk = AcpdbSessionStore(store)
        side = {**line(2, "assistant", [{"type": "text", "text": "aside"}]), "isSidechain": True, "agentId": "a1"}
        said = [line(1, "user", "hello"), side, line(3, "user", "more")]
        await sdk.append(KEY, said)
        assert await sdk.load(KEY) == said
        texts = [item["output"]["text"] for item in sdk.session(KEY).context()["items"] if item["output"]]
        assert texts == ["hello", "more"]

    asyncio.run(main())
