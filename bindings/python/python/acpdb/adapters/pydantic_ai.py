"""pydantic-ai: a history processor over acpdb.

```python
agent = Agent(model, capabilities=[ProcessHistory(AcpdbHistory(store.session("run-1")))])
```

Each request's messages are recorded as they pass, what is known only once; the model is sent what acpdb's context shows of
results that were superseded. Calls and results stay together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from hashlib import blake2b
from typing import cast

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

from .. import Entry, Part, Session
from . import _records


class AcpdbHistory:
    """Records the messages of requests, and prunes what the model is sent."""

    def __init__(self, session: Session, *, pruned: bool = True) -> None:
        self.session = session
        self.pruned = pruned

    async def __call__(self, messages: list[ModelMessage]) -> list[ModelMessage]:
        entries = [entry for place, message in enumerate(messages) for entry in _entries(place, message)]
        await self.session.submit(*entries)
        if not self.pruned:
            return messages
        shown = _records.pruned_outputs(self.session)
        return [_pruned(message, shown) for message in messages]


def _entries(place: int, message: ModelMessage) -> Iterator[Entry]:
    """The facts of a message. Calls and results are known again by the id of the call, others by place and text: the framework
    adds to messages that it has sent before."""
    if isinstance(message, ModelResponse):
        calls = [part.tool_call_id for part in message.parts if isinstance(part, ToolCallPart)]
        key = calls[0] if calls else _digest(place, message.parts)
        yield Entry.step(key, origin=f"step:{key}")
    made: list[Entry] = []
    for number, part in enumerate(message.parts):
        origin = f"{number}:{_digest(place, getattr(part, 'content', part.part_kind))}"
        match part:
            case SystemPromptPart():
                made.append(Entry.message("system", part.content, origin=origin))
            case UserPromptPart():
                made.append(Entry.message("user", _records.text(_plain(part.content)), origin=origin))
            case ToolReturnPart():
                said, finish = part.model_response_str(), f"call:{part.tool_call_id}:finish"
                made.append(Entry.tool_finished(part.tool_call_id, said, origin=finish))
            case RetryPromptPart() if part.tool_name is not None:
                said, finish = part.model_response(), f"call:{part.tool_call_id}:finish"
                made.append(Entry.tool_finished(part.tool_call_id, error=said, origin=finish))
            case RetryPromptPart():
                made.append(Entry.message("user", part.model_response(), origin=origin))
            case TextPart():
                made.append(Entry.message("assistant", part.content, origin=origin))
            case ThinkingPart():
                thought = [Part.reasoning(part.content, part.signature)]
                made.append(Entry.message("assistant", thought, origin=origin))
            case ToolCallPart():
                start = f"call:{part.tool_call_id}:start"
                made.append(Entry.tool_started(part.tool_call_id, part.tool_name, part.args_as_dict(), origin=start))
            case _:
                made.append(Entry.host_record(part.part_kind, origin=origin))
    yield from made


def _digest(place: int, content: object) -> str:
    return f"{place}:{blake2b(repr(content).encode(errors='replace'), digest_size=12).hexdigest()}"


def _plain(content: object) -> object:
    """Texts of a prompt; what is no text is left out."""
    if isinstance(content, (list, tuple)):
        return [part for part in content if isinstance(part, str)]
    return content


def _pruned(message: ModelMessage, shown: dict[str, str]) -> ModelMessage:
    if not isinstance(message, ModelRequest):
        return message
    parts = [
        replace(cast(ToolReturnPart, part), content=shown[part.tool_call_id])
        if type(part) is ToolReturnPart and part.tool_call_id in shown
        else part
        for part in message.parts
    ]
    return replace(message, parts=parts)
