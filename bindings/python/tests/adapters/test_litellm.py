"""LiteLLM over acpdb: its own completions with answers that are made up."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import acpdb
import litellm
import pytest
from acpdb.adapters.litellm import AcpdbLogger

NAMED = {"session_id": "run-1"}


def call(id: str, path: str) -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": "read", "arguments": json.dumps({"filePath": path})}}


def texts(logger: AcpdbLogger) -> list[tuple[str, str | None]]:
    return [(row["role"], row["call"]) for row in logger.session("run-1").history()]


def conversation(logger: AcpdbLogger, store: acpdb.Store) -> None:
    """Three requests; the ids of calls repeat."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "what is in a.rs?"}]
    for number, path in enumerate(["a.rs", "a.rs", None]):
        kwargs = {"litellm_params": {"metadata": NAMED}, "litellm_call_id": str(number), "messages": [*messages]}
        logger.log_pre_api_call("model", [*messages], kwargs)
        answer = {"role": "assistant", "content": None if path else "a main", "tool_calls": [call("read:0", path)] if path else None}
        response = litellm.ModelResponse(choices=[{"message": answer}])
        logger.log_success_event(kwargs, response, None, None)
        messages.append(answer)
        if path:
            messages.append({"role": "tool", "tool_call_id": "read:0", "content": "fn main() {}\n" * 50})


def test_requests_and_answers_are_recorded_each_once(store: acpdb.Store) -> None:
    logger = AcpdbLogger(store, project="shop")
    conversation(logger, store)
    session = logger.session("run-1")
    rows = session.history()
    assert [(row["role"], row["tool"]) for row in rows if row["kind"] != "request"] == [
        ("system", None),
        ("user", None),
        ("assistant", "read"),
        ("assistant", "read"),
        ("assistant", None),
    ]
    assert [row["rule"] for row in session.history(tool="read")] == ["repeat", None]
    # The same once more, by another process: the prompt is that of a new run.
    before = len(rows)
    AcpdbLogger(store).log_pre_api_call("model", [{"role": "user", "content": "what is in a.rs?"}], {"metadata": NAMED})
    assert len(session.history()) == before + 1
    assert store.verify(deep=True)["verdict"] == "sound"


def test_an_answer_that_the_next_request_told_is_known(store: acpdb.Store) -> None:
    logger = AcpdbLogger(store)
    first = [{"role": "user", "content": "one"}]
    answer = {"role": "assistant", "content": "two"}
    next_ = [*first, answer, {"role": "user", "content": "three"}]
    kwargs = [{"metadata": NAMED, "litellm_call_id": str(n), "messages": messages} for n, messages in enumerate([first, next_])]
    logger.log_pre_api_call("model", first, kwargs[0])
    logger.log_pre_api_call("model", next_, kwargs[1])
    logger.log_success_event(kwargs[0], litellm.ModelResponse(choices=[{"message": answer}]), None, None)
    assert [role for role, _ in texts(logger)] == ["user", "assistant", "user"]


def test_the_frameworks_own_calls_are_recorded(store: acpdb.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    logger = AcpdbLogger(store)
    monkeypatch.setattr(litellm, "callbacks", [logger])

    async def main() -> None:
        given: dict[str, Any] = {"model": "gpt-4o", "mock_response": "It is the linker.", "metadata": NAMED}
        await litellm.acompletion(messages=[{"role": "user", "content": "why is the build red?"}], **given)
        # Answers are told by a worker of the loop.
        for _ in range(500):
            if store.names() and len(texts(logger)) == 2:
                break
            await asyncio.sleep(0.01)

    asyncio.run(main())
    assert [role for role, _ in texts(logger)] == ["user", "assistant"]
    assert len(logger.session("run-1").search("It is the linker")["items"]) == 1


def test_what_names_no_session_goes_into_none(store: acpdb.Store) -> None:
    logger = AcpdbLogger(store)
    logger.log_pre_api_call("model", [{"role": "user", "content": "hello"}], {"litellm_params": {"metadata": None}})
    assert store.names() == []
    logger = AcpdbLogger(store, session_of=lambda kwargs: str(kwargs["user"]))
    logger.log_pre_api_call("model", "hello", {"user": "ada"})
    assert [name["id"] for name in store.names()] == ["ada"]
