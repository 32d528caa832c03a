"""pydantic-ai: a capability over acpdb.

```python
agent = Agent(model, capabilities=[AcpdbHistory(store.session("run-1"))])
```

Each request's messages are recorded as they pass, each once, and the model's answers as they come; the model is sent what acpdb's
context shows of results that were superseded. Calls and results stay together, and the run's own messages stay whole.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

from pydantic_ai import RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    RetryPromptPart,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestContext

from .. import Entry, Part, Session
from . import _records
from ._told import Told, Unit


class AcpdbHistory(AbstractCapability[Any]):
    """Records the messages of requests and the answers, and prunes what the model is sent.

    It may also be given to `ProcessHistory`; then answers are recorded with the next request, and the run keeps pruned messages.
    """

    def __init__(self, session: Session, *, pruned: bool = True) -> None:
        self.session = session
        self.pruned = pruned
        self._told = Told(session)
        self._run: str | None = None

    async def before_model_request(self, ctx: RunContext[Any], request_context: ModelRequestContext) -> ModelRequestContext:
        """Records what is new, and sends what acpdb shows."""
        request_context.messages = await self(ctx, list(request_context.messages))
        return request_context

    async def after_model_request(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, response: ModelResponse
    ) -> ModelResponse:
        """Records the answer."""
        await asyncio.to_thread(self._told.answered, [*_units(response)])
        return response

    async def __call__(self, ctx: RunContext[Any], messages: list[ModelMessage]) -> list[ModelMessage]:
        begins = ctx.run_id != self._run if ctx.run_id is not None else None
        units = [[*_units(message)] for message in messages]
        flat = [unit for some in units for unit in some]
        shown = await asyncio.to_thread(lambda: self._told.tell(flat, begins=begins))
        # A request that failed may be sent again: its prompt is still new then.
        self._run = ctx.run_id
        if not self.pruned:
            return messages
        sent: list[ModelMessage] = []
        first = 0
        for message, some in zip(messages, units, strict=True):
            sent.append(_pruned(message, {place - first: text for place, text in shown.items()}))
            first += len(some)
        return sent


def _units(message: ModelMessage) -> Iterator[Unit]:
    """One unit for each part of a message."""
    for number, part in enumerate(message.parts):
        begins = number == 0 and isinstance(message, ModelResponse)
        match part:
            case SystemPromptPart():
                yield _said("system", part.content)
            case UserPromptPart():
                yield _said("user", _plain(part.content), part.content)
            case ToolReturnPart():
                yield _end(part.tool_call_id, part.model_response_str(), failed=part.outcome != "success")
            case RetryPromptPart() if part.tool_name is not None:
                yield _end(part.tool_call_id, part.model_response(), failed=True)
            case RetryPromptPart():
                yield _said("user", part.model_response())
            case TextPart():
                yield _said("assistant", part.content, begins=begins)
            case ThinkingPart():
                yield _thought(part, begins)
            case ToolCallPart():
                yield _call(part, begins)
            case _:
                yield _other(part.part_kind, repr(part), begins)


def _said(role: Any, content: Any, says: object = None, *, begins: bool = False) -> Unit:
    return Unit(role, lambda _: _records.said(role, content), says or content, begins=begins)


def _thought(part: ThinkingPart, begins: bool) -> Unit:
    thought = [Part.reasoning(_records.whole(part.content), part.signature)]
    return Unit("assistant", lambda _: Entry.message("assistant", thought), ("thought", part.content), begins=begins)


def _call(part: ToolCallPart, begins: bool) -> Unit:
    # The model's own text and what was read from it are the same call.
    try:
        says = json.dumps(part.args_as_dict(), sort_keys=True)
    except (ValueError, TypeError, AssertionError):
        says = str(part.args)
    name, args = part.tool_name, part.args
    return Unit("call", lambda call: _records.started(call, name, args), (name, says), part.tool_call_id, begins)


def _other(kind: str, says: str, begins: bool) -> Unit:
    return Unit("other", lambda _: Entry.host_record(kind), (kind, says), begins=begins)


def _end(id: str, output: str, *, failed: bool) -> Unit:
    return Unit("end", lambda call: _records.ended(call, output, failed=failed), id=id)


def _plain(content: object) -> object:
    """Texts of a prompt; what is no text is left out."""
    if isinstance(content, (list, tuple)):
        texts = (part if isinstance(part, str) else getattr(part, "content", None) for part in content)
        return [text for text in texts if isinstance(text, str)]
    return content


def _pruned(message: ModelMessage, shown: dict[int, str]) -> ModelMessage:
    if not isinstance(message, ModelRequest) or not any(0 <= place < len(message.parts) for place in shown):
        return message
    parts = [
        replace(cast("ToolReturnPart[Any]", part), content=shown[place])
        if type(part) is ToolReturnPart and place in shown else part
        for place, part in enumerate(message.parts)
    ]
    return replace(message, parts=parts)
