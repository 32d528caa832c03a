"""A middleware of LangChain's agents over acpdb, in real agents with a model that is told what to say."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import acpdb
import pytest
from acpdb.adapters.langchain_agents import AcpdbMiddleware
from langchain.agents import create_agent
from langchain.agents.middleware import ModelRetryMiddleware
from langchain.tools import tool
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage, ChatMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver


class Model(GenericFakeChatModel):
    """Says what it is told, and keeps what it was sent."""

    sent: list[list[BaseMessage]] = []

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        return self

    def _generate(self, messages: list[BaseMessage], *given: Any, **options: Any) -> Any:
        self.sent.append(messages)
        return super()._generate(messages, *given, **options)


@tool
def read(filePath: str) -> str:
    """Reads a file."""
    if filePath == "\ud83d":
        return "half of a pair: \ud83d"
    return f"text of {filePath} " * 60


def call(*paths: str) -> AIMessage:
    """Reads files. The ids restart with each answer."""
    return AIMessage("", tool_calls=[{"name": "read", "args": {"filePath": it}, "id": f"read:{n}"} for n, it in enumerate(paths)])


def agent(middleware: AcpdbMiddleware, *says: AIMessage, saver: Any = None) -> tuple[Any, Model]:
    model = Model(messages=iter(says), sent=[])
    return create_agent(model, [read], middleware=[middleware], checkpointer=saver, system_prompt="Be brief."), model


def results(messages: list[Any]) -> Iterator[str]:
    return (message.content for message in messages if isinstance(message, ToolMessage))


CONFIG: Any = {"configurable": {"thread_id": "t"}}


@pytest.mark.parametrize("is_async", [False, True])
def test_stale_results_are_not_sent_and_the_state_stays_whole(store: acpdb.Store, is_async: bool) -> None:
    middleware = AcpdbMiddleware(store)
    made, model = agent(middleware, call("a", "b"), call("c"), call("a"), AIMessage("It is the linker."))
    given = {"messages": [HumanMessage("why is the build red?")]}
    state = asyncio.run(made.ainvoke(given, CONFIG)) if is_async else made.invoke(given, CONFIG)
    whole = [*results(state["messages"])]
    assert whole == [f"text of {path} " * 60 for path in "abca"]
    stale, *fresh = results(model.sent[-1])
    assert len(stale) < 100 and fresh == whole[1:]
    assert [*results(model.sent[-2])] == whole[:3], "a result is sent whole until it is stale"
    session = middleware.session("t")
    rows = [(row["role"], row["tool"], row["state"]) for row in session.history()]
    assert rows == [
        ("system", None, "whole"),
        ("user", None, "whole"),
        ("assistant", "read", "tombstone"),
        *[("assistant", "read", "whole")] * 3,
        ("assistant", None, "whole"),
    ]
    assert session.view().context()["turn"] == 4, "each answer is a step"


def test_each_run_of_a_thread_is_recorded_once(store: acpdb.Store) -> None:
    saver = InMemorySaver()
    for number in range(3):
        # Another middleware each time, as after a restart.
        made, _ = agent(AcpdbMiddleware(store, pruned=False), call("a"), AIMessage("done"), saver=saver)
        state = made.invoke({"messages": [HumanMessage("look")]}, CONFIG)
        assert len([*results(state["messages"])]) == number + 1
    said = [row["role"] for row in AcpdbMiddleware(store).session("t").history() if row["call"] is None]
    assert said == ["system", *["user", "assistant"] * 3]
    assert len(AcpdbMiddleware(store).session("t").history(tool="read")) == 3


def test_a_prompt_is_recorded_though_its_request_had_to_be_sent_again(store: acpdb.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run was taken for begun when its first request had failed: its prompt, which an earlier run had said, was not recorded."""
    middleware = AcpdbMiddleware(store)
    append, fails = acpdb.Session.append, iter([False, False, True, False, False])

    def busy(self: acpdb.Session, *entries: acpdb.Entry) -> acpdb.Receipt:
        if next(fails):
            raise acpdb.BusyError("another process writes")
        return append(self, *entries)

    monkeypatch.setattr(acpdb.Session, "append", busy)
    for _ in range(2):
        model = Model(messages=iter([AIMessage("done")]), sent=[])
        again: Any = ModelRetryMiddleware(max_retries=1, initial_delay=0, on_failure="error")
        create_agent(model, [], middleware=[again, middleware]).invoke({"messages": [HumanMessage("look")]}, CONFIG)
    assert [*fails] == []
    assert [row["role"] for row in middleware.session("t").history()] == ["user", "assistant"] * 2


def test_threads_are_sessions_of_their_own_also_at_once(store: acpdb.Store) -> None:
    middleware = AcpdbMiddleware(store)

    async def run(thread: int) -> None:
        made, _ = agent(middleware, call(f"{thread}"), call("shared"), AIMessage(f"done {thread}"))
        await made.ainvoke({"messages": [HumanMessage("look")]}, {"configurable": {"thread_id": thread}})

    async def main() -> None:
        await asyncio.gather(*map(run, range(8)))

    asyncio.run(main())
    for thread in range(8):
        rows = middleware.session(str(thread)).history()
        assert [row["role"] for row in rows] == ["system", "user", "assistant", "assistant", "assistant"]
        assert middleware.session(str(thread)).search(f"done {thread}")["items"]


def test_an_agent_in_a_tool_hides_nothing_of_the_one_that_called_it(store: acpdb.Store) -> None:
    """It has the thread's id, too: what it read again was hidden from the other one, which had never seen that."""
    middleware = AcpdbMiddleware(store)
    inner, _ = agent(middleware, *[call("a"), call("a"), AIMessage("sub done")] * 2)

    @tool
    def ask(question: str) -> str:
        """Asks another agent."""
        return str(inner.invoke({"messages": [HumanMessage(question)]})["messages"][-1].content)

    asks = [AIMessage("", tool_calls=[{"name": "ask", "args": {"question": it}, "id": "read:0"}]) for it in ("what is in a?", "really?")]
    model = Model(messages=iter([call("a"), *asks, AIMessage("done")]), sent=[])
    outer = create_agent(model, [read, ask], middleware=[middleware], checkpointer=InMemorySaver())
    outer.invoke({"messages": [HumanMessage("look")]}, CONFIG)
    first, *_ = results(model.sent[-1])
    assert first == "text of a " * 60
    keys = [name["id"] for name in store.names() if name["host"] == "langchain-agents"]
    assert keys[0] == "t" and len(keys) == 3 and all(key.startswith("t/tools:") for key in keys[1:])
    assert [row["role"] for row in middleware.session("t").history()] == ["user", *["assistant"] * 4]


def test_thoughts_texts_and_halves_of_pairs_are_recorded(store: acpdb.Store) -> None:
    middleware = AcpdbMiddleware(store, session_of=lambda _: "mine")
    thought: Any = [{"type": "thinking", "thinking": "hm \ud83d", "signature": "s"}, {"type": "text", "text": "I will."}]
    asks = AIMessage(thought, tool_calls=[{"name": "read", "args": {"filePath": "\ud83d"}, "id": ""}])
    made, _ = agent(middleware, asks, AIMessage("done \ud83d"))
    made.invoke({"messages": [HumanMessage([{"type": "text", "text": "look \ud83d"}, {"type": "image", "url": "x"}])]})
    session = middleware.session("mine")
    # The thought, the text, the call; and the answer.
    assert [row["role"] for row in session.history()] == ["system", "user", *["assistant"] * 4]
    assert session.search("half of a pair")["items"] and session.search("I will.")["items"]
    assert store.verify(deep=True)["verdict"] == "sound"


def test_messages_of_other_kinds_are_recorded_as_such(store: acpdb.Store) -> None:
    """Each was made a record that was thrown away; one that JSON has no form for ended the run."""
    middleware = AcpdbMiddleware(store)
    for _ in range(2):
        made, _ = agent(middleware, AIMessage("done"))
        other = ChatMessage("look \ud83d", role="critic", additional_kwargs={"by": object()})
        made.invoke({"messages": [other, HumanMessage("look")]}, CONFIG)
    session = middleware.session("t")
    marks = [json.loads(raw) for _, raw in session.records()]
    assert [mark["unit"] for mark in marks] == ["system", "other", "user", "assistant", "user", "assistant"]
    assert set(marks[1]) == {"unit", "is"}, "the mark alone is kept"
    assert [row["role"] for row in session.history()] == ["system", *["user", "assistant"] * 2]


def test_a_run_without_a_thread_is_told_how_to_name_one(tmp_path: Path, store: acpdb.Store) -> None:
    made, _ = agent(AcpdbMiddleware(store), AIMessage("done"))
    with pytest.raises(acpdb.InvalidError, match="thread_id"):
        made.invoke({"messages": [HumanMessage("look")]})
