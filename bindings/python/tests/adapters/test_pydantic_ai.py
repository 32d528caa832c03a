"""pydantic-ai over acpdb: an agent with a model that is made up."""

from __future__ import annotations

import asyncio

import acpdb
from acpdb.adapters.pydantic_ai import AcpdbHistory
from pydantic_ai import Agent
from pydantic_ai.capabilities import ProcessHistory
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
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
