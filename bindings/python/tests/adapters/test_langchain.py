"""LangChain's message history over acpdb."""

from __future__ import annotations

import asyncio

import acpdb
from acpdb.adapters.langchain import AcpdbChatMessageHistory
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

LONG = "fn main() {}\n" * 100


def read(number: int) -> list[AIMessage | ToolMessage]:
    call = {"name": "read", "args": {"filePath": "a.rs"}, "id": f"c{number}", "type": "tool_call"}
    return [AIMessage("", tool_calls=[call]), ToolMessage(LONG, tool_call_id=f"c{number}")]


def test_messages_come_back_and_are_cleared(store: acpdb.Store) -> None:
    history = AcpdbChatMessageHistory("s1", store)
    assert history.messages == []
    history.clear()
    said = [SystemMessage("Be brief."), HumanMessage([{"type": "text", "text": "hello"}]), *read(1)]
    history.add_messages(said)
    asyncio.run(history.aadd_messages([AIMessage("Hi.")]))
    assert history.messages == [*said, AIMessage("Hi.")]
    assert [row["call"] for row in history.session.history(tool="read")] == ["c1"]
    history.clear()
    assert AcpdbChatMessageHistory("s1", store).messages == []
    history.add_user_message("again")
    assert [message.content for message in history.messages] == ["again"]


def test_a_pruned_history_shows_what_stands_in_for_old_results(store: acpdb.Store) -> None:
    history = AcpdbChatMessageHistory("s1", store, pruned=True)
    for number in (1, 2):
        history.session.step(f"t{number}")
        history.add_messages(read(number))
    _, old, _, new = history.messages
    assert len(old.content) < 200 and new.content == LONG
