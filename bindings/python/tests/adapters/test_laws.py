"""The law of all adapters: whatever ids calls have, what is fresh is sent whole, and the log has each call once.

The story: adapters took the id of a call for its name. Models use ids again, and then fresh results were sent as
`[auto-superseded: ..]`, calls were recorded twice or not at all, and a prompt that was said again was not recorded.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
from collections.abc import Callable, Coroutine
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import acpdb
import langchain.agents.middleware as lc
import pytest
from acpdb.adapters._told import common
from acpdb.adapters.claude import AcpdbSessionStore
from acpdb.adapters.google_adk import AcpdbSessionService
from acpdb.adapters.langchain import AcpdbChatMessageHistory
from acpdb.adapters.langchain_agents import AcpdbMiddleware
from acpdb.adapters.litellm import AcpdbLogger
from acpdb.adapters.openai import AcpdbSession
from acpdb.adapters.pydantic_ai import AcpdbHistory
from conversations import Call, Run, Truth, runs
from google.adk.events.event import Event
from google.genai import types
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

CASES = int(os.environ.get("ACPDB_LAW_CASES", "60"))
Player = Callable[[acpdb.Store, list[Run], random.Random], Coroutine[Any, Any, tuple[acpdb.Session, Truth]]]


async def openai(store: acpdb.Store, all: list[Run], draw: random.Random) -> tuple[acpdb.Session, Truth]:
    truth, finished = Truth(), list[Call]()
    session = AcpdbSession("s", store, pruned=True)

    async def sent() -> None:
        outputs = [it["output"] for it in await session.get_items() if it.get("type") == "function_call_output"]
        truth.judge(zip(finished, outputs, strict=True))

    for run in all:
        if draw.random() < 0.5:
            session = AcpdbSession("s", store, pruned=True)
        await session.add_items([{"role": "user", "content": run.prompt}])
        for turn in run.turns:
            session.session.step()
            items: list[Any] = [
                {"type": "function_call", "call_id": it.id, "name": it.tool, "arguments": json.dumps(it.args)} for it in turn
            ]
            outputs: list[Any] = [
                {"type": "function_call_output", "call_id": it.id, "output": it.output} for it in turn if it.is_finished
            ]
            if draw.random() < 0.5:
                await session.add_items([*items, *outputs])
            else:
                await session.add_items(items)
                await session.add_items(outputs)
            truth.calls += turn
            finished += [it for it in turn if it.is_finished]
            await sent()
        await session.add_items([{"role": "assistant", "content": run.answer}])
        await sent()
    return session.session, truth


async def langchain(store: acpdb.Store, all: list[Run], draw: random.Random) -> tuple[acpdb.Session, Truth]:
    truth, finished = Truth(), list[Call]()
    history = AcpdbChatMessageHistory("s", store, pruned=True)
    for run in all:
        if draw.random() < 0.5:
            history = AcpdbChatMessageHistory("s", store, pruned=True)
        history.add_messages([HumanMessage(run.prompt)])
        for turn in run.turns:
            history.session.step()
            calls: Any = [{"name": it.tool, "args": it.args, "id": it.id, "type": "tool_call"} for it in turn]
            history.add_messages([AIMessage("", tool_calls=calls)])
            await history.aadd_messages([ToolMessage(it.output, tool_call_id=it.id) for it in turn if it.is_finished])
            truth.calls += turn
            finished += [it for it in turn if it.is_finished]
            truth.judge(zip(finished, [it.content for it in history.messages if isinstance(it, ToolMessage)], strict=True))
        history.add_messages([AIMessage(run.answer)])
    return history.session, truth


def pydantic(*, is_capability: bool) -> Player:
    async def play(store: acpdb.Store, all: list[Run], draw: random.Random) -> tuple[acpdb.Session, Truth]:
        session, truth = store.session("s"), Truth()
        history = AcpdbHistory(session)
        earlier: list[ModelMessage] = []
        before: list[Call] = []
        prompts = 0
        broken: list[Call] = []
        for number, run in enumerate(all):
            if not run.continues:
                truth.lose(broken, are_told=is_capability)
            broken = []
            if draw.random() < 0.5:
                history = AcpdbHistory(session)
            ctx: Any = SimpleNamespace(run_id=f"run-{number}" if draw.random() < 0.8 or not is_capability else None)
            messages: list[ModelMessage] = [*earlier] if run.continues else []
            finished: list[Call] = [*before] if run.continues else []
            messages.append(ModelRequest([UserPromptPart(run.prompt)]))
            prompts += 1
            for step in range(len(run.turns) + 1):
                if is_capability:
                    request: Any = SimpleNamespace(messages=messages)
                    sent = (await history.before_model_request(ctx, request)).messages
                else:
                    # The framework goes on with what it was given.
                    sent = messages = await history(ctx, messages)
                outputs = [part.content for it in sent for part in it.parts if isinstance(part, ToolReturnPart)]
                truth.judge(zip(finished, outputs, strict=True))
                said = [row for row in session.history() if row["role"] == "user" and row["call"] is None]
                assert len(said) == prompts, "each prompt is recorded, whatever it says and wherever it stands"
                turn = run.turns[step] if step < len(run.turns) else None
                if turn is None:
                    response = ModelResponse([TextPart(run.answer)])
                else:
                    response = ModelResponse([ToolCallPart(it.tool, it.args, it.id) for it in turn])
                if is_capability:
                    await history.after_model_request(ctx, request_context=request, response=response)
                messages = [*messages, response]
                if turn is not None:
                    truth.calls += turn
                    returned = [ToolReturnPart(it.tool, it.output, it.id) for it in turn if it.is_finished]
                    finished += [it for it in turn if it.is_finished]
                    if returned:
                        messages.append(ModelRequest(returned))
                    if len(returned) < len(turn):
                        broken = turn
                        break
            earlier, before = messages, finished
        # What came after the last request is told with the next one.
        final: Any = SimpleNamespace(run_id="last", messages=[*earlier, ModelRequest([UserPromptPart("thanks")])])
        await history(final, final.messages)
        return session, truth

    return play


async def lite(store: acpdb.Store, all: list[Run], draw: random.Random) -> tuple[acpdb.Session, Truth]:
    truth, logger = Truth(), AcpdbLogger(store)
    earlier: list[dict[str, Any]] = []
    broken: list[Call] = []
    requests = iter(range(10_000))
    for run in all:
        if not run.continues:
            truth.lose(broken, are_told=True)
        broken = []
        if draw.random() < 0.5:
            logger = AcpdbLogger(store)
        messages = [*earlier] if run.continues else []
        messages.append({"role": "user", "content": run.prompt})
        for step in range(len(run.turns) + 1):
            turn = run.turns[step] if step < len(run.turns) else []
            called = [{"id": it.id, "function": {"name": it.tool, "arguments": json.dumps(it.args)}} for it in turn]
            answer = {"role": "assistant", "content": None if turn else run.answer, "tool_calls": called or None}
            kwargs = {"metadata": {"session_id": "s"}, "litellm_call_id": str(next(requests)), "messages": [*messages]}
            # Not all ways tell of a request before it is sent.
            if draw.random() < 0.8:
                logger.log_pre_api_call("model", [*messages], kwargs)
            response = SimpleNamespace(choices=[SimpleNamespace(message=answer)])
            logger.log_success_event(kwargs, response, None, None)
            messages.append(answer)
            truth.calls += turn
            messages += [{"role": "tool", "tool_call_id": it.id, "content": it.output} for it in turn if it.is_finished]
            if not all_finished(turn):
                broken = turn
                break
        earlier = messages
    # What came after the last request is told with the next one.
    messages = [*earlier, {"role": "user", "content": "thanks"}]
    logger.log_pre_api_call("model", messages, {"metadata": {"session_id": "s"}, "litellm_call_id": "last"})
    return logger.session("s"), truth


async def agents(store: acpdb.Store, all: list[Run], draw: random.Random) -> tuple[acpdb.Session, Truth]:
    truth = Truth()

    def made() -> AcpdbMiddleware:
        return AcpdbMiddleware(store, session_of=lambda _: "s")

    middleware, state, runtime = made(), cast(Any, {"messages": []}), cast(Any, None)
    earlier: list[AnyMessage] = []
    before: list[Call] = []
    broken: list[Call] = []
    prompts = 0
    system = SystemMessage("Be brief.") if draw.random() < 0.5 else None

    async def ask(messages: list[AnyMessage], finished: list[Call], answer: AIMessage | None) -> None:
        def judged(request: lc.ModelRequest[Any]) -> lc.ModelResponse[Any]:
            truth.judge(zip(finished, [str(it.content) for it in request.messages if isinstance(it, ToolMessage)], strict=True))
            if answer is None:
                raise TimeoutError("the model is away")
            return lc.ModelResponse([answer])

        async def later(request: lc.ModelRequest[Any]) -> lc.ModelResponse[Any]:
            return judged(request)

        request = lc.ModelRequest(model=cast(Any, None), messages=[*messages], system_message=system, runtime=runtime, state=state)
        if draw.random() < 0.5:
            middleware.wrap_model_call(request, judged)
        else:
            await middleware.awrap_model_call(request, later)

    for run in all:
        if not run.continues:
            truth.lose(broken, are_told=True)
        broken = []
        messages: list[AnyMessage] = [*earlier] if run.continues else []
        finished = [*before] if run.continues else []
        # A model that cannot be reached is asked again: in the same run, or by the same prompt in another one.
        for _ in range(draw.choice([1, 1, 1, 2])):
            middleware.before_agent(state, runtime)
            messages.append(HumanMessage(run.prompt))
            prompts += 1
            for _ in range(draw.choice([0, 0, 0, 1, 2])):
                with pytest.raises(TimeoutError):
                    await ask(messages, finished, None)
        for step in range(len(run.turns) + 1):
            if draw.random() < 0.3 and told_is_whole(store, prompts):
                middleware = made()
            turn = run.turns[step] if step < len(run.turns) else []
            calls: Any = [{"name": it.tool, "args": it.args, "id": it.id, "type": "tool_call"} for it in turn]
            answer = AIMessage("" if turn else run.answer, tool_calls=calls)
            await ask(messages, finished, answer)
            assert told_is_whole(store, prompts), "each prompt is recorded once, whatever it says"
            truth.calls += turn
            messages = [*messages, answer, *(ToolMessage(it.output, tool_call_id=it.id) for it in turn if it.is_finished)]
            finished += [it for it in turn if it.is_finished]
            if not all_finished(turn):
                broken = turn
                break
        earlier, before = messages, finished
    middleware.before_agent(state, runtime)
    await ask([*earlier, HumanMessage("thanks")], before, AIMessage("bye"))
    return middleware.session("s"), truth


def told_is_whole(store: acpdb.Store, prompts: int) -> bool:
    try:
        rows = store.session("s", host="langchain-agents").history()
    except acpdb.NotFoundError:
        return prompts == 0
    return len([row for row in rows if row["role"] == "user" and row["call"] is None]) == prompts


def all_finished(turn: list[Call]) -> bool:
    return all(it.is_finished for it in turn)


async def claude(store: acpdb.Store, all: list[Run], draw: random.Random) -> tuple[acpdb.Session, Truth]:
    truth, key = Truth(), {"project_key": "p", "session_id": "s"}
    numbers = iter(range(10_000))

    def line(role: str, content: object) -> Any:
        number = next(numbers)
        message = {"role": role, "content": content, "id": f"msg_{number}"}
        time = f"2026-01-01T00:{number // 60:02}:{number % 60:02}.000Z"
        return {"type": role, "uuid": f"u-{number}", "sessionId": "s", "timestamp": time, "message": message}

    sdk = AcpdbSessionStore(store)
    for call, place in [(it, place) for run in all for turn in run.turns for place, it in enumerate(turn)]:
        # Claude Code itself tells the calls of one answer apart.
        call.id = f"{call.id or call.tool}-{place}"
    for run in all:
        lines = [line("user", run.prompt)]
        for turn in run.turns:
            lines.append(line("assistant", [{"type": "tool_use", "id": it.id, "name": it.tool, "input": it.args} for it in turn]))
            results = [{"type": "tool_result", "tool_use_id": it.id, "content": it.output} for it in turn if it.is_finished]
            lines += [line("user", results)] if results else []
            truth.calls += turn
        await sdk.append(key, lines)
    return sdk.session(key), truth


async def adk(store: acpdb.Store, all: list[Run], draw: random.Random) -> tuple[acpdb.Session, Truth]:
    truth, service = Truth(), AcpdbSessionService(store)
    names = {"app_name": "app", "user_id": "u", "session_id": "s"}
    session = await service.create_session(**names)
    for number, run in enumerate(all):
        if draw.random() < 0.5:
            service = AcpdbSessionService(store)

        async def say(author: str, parts: list[types.Part], number: int = number) -> None:
            content = types.Content(role="user" if author == "user" else "model", parts=parts)
            await service.append_event(session, Event(author=author, invocation_id=f"i{number}", content=content))

        await say("user", [types.Part(text=run.prompt)])
        for turn in run.turns:
            calls = [types.Part(function_call=types.FunctionCall(id=it.id, name=it.tool, args=it.args)) for it in turn]
            await say("agent", calls)
            ends = [
                types.Part(function_response=types.FunctionResponse(id=it.id, name=it.tool, response={"result": it.output}))
                for it in turn
                if it.is_finished
            ]
            if ends:
                await say("agent", ends)
            truth.calls += turn
        await say("agent", [types.Part(text=run.answer)])
    return service.session("app", "u", "s"), truth


PLAYERS: dict[str, Player] = {
    "openai": openai,
    "langchain": langchain,
    "pydantic_ai": pydantic(is_capability=True),
    "pydantic_ai as a processor": pydantic(is_capability=False),
    "langchain_agents": agents,
    "litellm": lite,
    "claude": claude,
    "google_adk": adk,
}


@pytest.mark.parametrize("name", PLAYERS)
def test_what_is_fresh_is_sent_whole_and_the_log_has_each_call_once(name: str, tmp_path: Path) -> None:
    for seed in range(CASES):
        draw = random.Random(seed)
        with acpdb.open(tmp_path / f"{seed}", durability="os") as store:
            try:
                session, truth = asyncio.run(PLAYERS[name](store, runs(draw), draw))
                truth.check(session)
            except AssertionError as error:
                raise AssertionError(f"seed {seed}: {error}") from error


def test_a_window_over_the_conversation_tells_nothing_twice(store: acpdb.Store) -> None:
    """A framework that keeps the newest messages alone sends a list that begins in the middle."""
    session, draw = store.session("s"), random.Random(3)
    history = AcpdbHistory(session)
    messages: list[ModelMessage] = []
    calls = 0
    for run in range(6):
        ctx: Any = SimpleNamespace(run_id=f"run-{run}")
        messages.append(ModelRequest([UserPromptPart("look")]))
        for _ in range(4):
            asyncio.run(history(ctx, messages[-draw.randint(1, 9) :]))
            call = ToolCallPart("read", {"filePath": draw.choice("abc")}, f"call_{calls}")
            calls += 1
            messages += [ModelResponse([call]), ModelRequest([ToolReturnPart("read", "x" * 200, call.tool_call_id)])]
            asyncio.run(history(ctx, messages[-draw.randint(2, 9) :]))
    rows = session.history(tool="read")
    assert [row["call"] for row in rows] == [f"call_{number}" for number in range(calls)]
    assert all(row["status"] == "completed" for row in rows)
    assert len([row for row in session.history() if row["role"] == "user"]) == 6


def test_a_common_order_is_the_longest_and_of_equals_the_latest() -> None:
    table = [("", "abc", []), ("abc", "abc", [(0, 0), (1, 1), (2, 2)]), ("bc", "abcbc", [(0, 3), (1, 4)]), ("xbyc", "abc", [(1, 1), (3, 2)])]
    for told, known, expected in table:
        assert common(told, known) == expected, (told, known)
    draw = random.Random(7)
    for _ in range(300):
        told, known = ["".join(draw.choices("abc", k=draw.randint(0, 7))) for _ in range(2)]
        found = common(told, known)
        assert all(told[this] == known[that] for this, that in found)
        assert all(a < b and c < d for (a, c), (b, d) in zip(found, found[1:], strict=False))
        best = [[0] * (len(known) + 1) for _ in range(len(told) + 1)]
        for i, one in enumerate(told):
            for j, other in enumerate(known):
                best[i + 1][j + 1] = best[i][j] + 1 if one == other else max(best[i][j + 1], best[i + 1][j])
        assert len(found) == best[-1][-1]
