"""pydantic-ai over acpdb: an agent with a model that is made up."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import acpdb
import pytest
from acpdb.adapters.pydantic_ai import AcpdbHistory
from pydantic_ai import Agent
from pydantic_ai.capabilities import ProcessHistory
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

LONG = "fn main() {}\n" * 100


def test_an_agent_is_sent_what_still_holds(store: acpdb.Store) -> None:
    sent: list[list[str]] = []

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        returns = [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]
        sent.append([str(part.content) for part in returns])
        if len(returns) < 3:
            return ModelResponse([ToolCallPart("read", {"filePath": "a.rs"}, tool_call_id=f"c{len(returns)}")])
        return ModelResponse([TextPart("It is a main.")])

    session = store.session("run-1")
    agent = Agent(FunctionModel(model), capabilities=[ProcessHistory(AcpdbHistory(session))])

    @agent.tool_plain(name="read")
    def read(filePath: str) -> str:
        return LONG

    result = asyncio.run(agent.run("what is in a.rs?"))
    assert result.output == "It is a main."
    assert [len(texts) for texts in sent] == [0, 1, 2, 3]
    assert sent[3][2] == LONG and all(len(text) < 200 for text in sent[3][:2])
    rows = session.history(tool="read")
    assert [(row["call"], row["rule"]) for row in rows] == [("c0", "repeat"), ("c1", "repeat"), ("c2", None)]
    # What is told again is known.
    assert [row["kind"] for row in session.history()] == ["text", "call", "call", "call"], session.history()[-1]


def test_as_a_capability_it_records_the_answer_and_leaves_the_runs_messages_whole(store: acpdb.Store) -> None:
    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        count = sum(isinstance(part, ToolReturnPart) for message in messages[-6:] for part in message.parts)
        if count < 2:
            return ModelResponse([ToolCallPart("read", {"filePath": "a.rs"}, tool_call_id="read:0")])
        return ModelResponse([TextPart("It is a main.")])

    session = store.session("run-1")
    agent = Agent(FunctionModel(model), capabilities=[AcpdbHistory(session)])

    @agent.tool_plain(name="read")
    def read(filePath: str) -> str:
        return LONG

    first = asyncio.run(agent.run("look"))
    second = asyncio.run(agent.run("look"))
    asyncio.run(agent.run("look", message_history=second.all_messages()))
    whole = [part for message in first.all_messages() for part in message.parts if isinstance(part, ToolReturnPart)]
    assert [part.content for part in whole] == [LONG, LONG]
    said = [row["role"] for row in session.history() if row["call"] is None]
    assert said == ["user", "assistant"] * 3
    assert [row["rule"] for row in session.history(tool="read")].count(None) == 1


def test_a_prompt_is_recorded_though_its_request_had_to_be_sent_again(store: acpdb.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run was taken for begun when its first request had failed: its prompt, which an earlier run had said, was not recorded."""
    session = store.session("run-1")
    history = AcpdbHistory(session)

    def ask(run: str) -> None:
        of_run: Any = SimpleNamespace(run_id=run)
        asyncio.run(history(of_run, [ModelRequest.user_text_prompt("look")]))

    def busy(self: acpdb.Session, *entries: acpdb.Entry) -> acpdb.Receipt:
        raise acpdb.BusyError("another process writes")

    ask("first")
    with monkeypatch.context() as patch, pytest.raises(acpdb.BusyError):
        patch.setattr(acpdb.Session, "append", busy)
        ask("second")
    ask("second")
    ask("second")
    assert [row["role"] for row in session.history()] == ["user", "user"]
