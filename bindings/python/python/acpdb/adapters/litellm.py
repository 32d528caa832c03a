"""LiteLLM: a callback that records the requests and answers of any provider.

```python
litellm.callbacks = [AcpdbLogger(store)]
litellm.completion(model, messages=messages, metadata={"session_id": "run-1"})
```

Messages are recorded as they pass, each once, and so are the answers. Nothing of a request is changed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from threading import Lock
from typing import Any

from litellm.integrations.custom_logger import CustomLogger

from .. import Session, Store
from . import _records
from ._told import HELD_MAX, Told, Tolds, Unit

HOST = "litellm"

Message = Mapping[str, Any]


class AcpdbLogger(CustomLogger):
    """Records requests and answers in the session that `metadata={"session_id": ..}` names, or that `session_of` says.

    What names no session goes into none. A stream's answer is recorded once it has ended.
    """

    def __init__(
        self, store: Store, *, project: str | None = None, session_of: Callable[[dict[str, Any]], str | None] | None = None
    ) -> None:
        super().__init__()
        self.store = store
        self.project = project
        self._session_of = session_of or _session_of
        self._tolds = Tolds(self.session)
        #: Calls whose requests were told.
        self._asked: dict[str, None] = {}
        self._lock = Lock()

    def session(self, key: str) -> Session:
        """The session of a key."""
        return self.store.session(key, host=HOST, project=self.project)

    def log_pre_api_call(self, model: str, messages: Any, kwargs: dict[str, Any]) -> None:
        """Records what is new in a request, before it is sent."""
        told = self._of(kwargs)
        if told is not None:
            self._ask(told, kwargs, messages)

    def _ask(self, told: Told, kwargs: dict[str, Any], messages: Any) -> None:
        call = str(kwargs.get("litellm_call_id"))
        with self._lock:
            is_known = call in self._asked
            self._asked[call] = None
            if len(self._asked) > 16 * HELD_MAX:
                del self._asked[next(iter(self._asked))]
        if not is_known:
            told.tell([*_units(messages)])

    def log_success_event(self, kwargs: dict[str, Any], response_obj: Any, start_time: Any, end_time: Any) -> None:
        """Records the answer. The next request may have told it already."""
        told = self._of(kwargs)
        answer = _answer(response_obj)
        if told is not None and answer is not None:
            messages = _messages(kwargs.get("messages"))
            # Not all ways to a model tell of a request before it is sent.
            self._ask(told, kwargs, messages)
            told.tell([*_units([*messages, answer])], begins=False)

    async def async_log_success_event(self, kwargs: dict[str, Any], response_obj: Any, start_time: Any, end_time: Any) -> None:
        # In the loop, as the request was: a thread could end behind the loop.
        self.log_success_event(kwargs, response_obj, start_time, end_time)

    def _of(self, kwargs: dict[str, Any]) -> Told | None:
        key = self._session_of(kwargs)
        if not key:
            return None
        return self._tolds.of(key)


def _session_of(kwargs: dict[str, Any]) -> str | None:
    given = kwargs.get("litellm_params") or {}
    for place in (given.get("metadata"), given.get("litellm_metadata"), kwargs.get("metadata")):
        if isinstance(place, Mapping) and place.get("session_id"):
            return str(place["session_id"])
    return None


def _messages(given: Any) -> Sequence[Message]:
    """A list of messages; a completion's prompt is one."""
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    return [_plain(message) for message in given or ()]


def _plain(message: Any) -> Message:
    if isinstance(message, Mapping):
        return message
    dumped: Message = message.model_dump() if hasattr(message, "model_dump") else {"role": "user", "content": str(message)}
    return dumped


def _answer(response: Any) -> Message | None:
    """The message of the first choice."""
    choices = getattr(response, "choices", None) or [None]
    message = getattr(choices[0], "message", None)
    return None if message is None else _plain(message)


def _units(messages: Any) -> Iterator[Unit]:
    """Prompts, texts, calls and their ends, in order."""
    for message in _messages(messages):
        role = message.get("role")
        text = _records.text(message.get("content"))
        if role in ("tool", "function"):
            yield _end(str(message.get("tool_call_id") or message.get("name") or ""), text)
            continue
        if role == "assistant":
            calls = [*(message.get("tool_calls") or ())]
            if message.get("function_call"):
                calls.append({"id": message["function_call"].get("name"), "function": message["function_call"]})
            if text or not calls:
                yield _said("assistant", text, begins=True)
            for number, call in enumerate(calls):
                yield _call(_plain(call), begins=number == 0 and not text)
            continue
        yield _said("system" if role in ("system", "developer") else "user", text)


def _said(role: Any, text: str, *, begins: bool = False) -> Unit:
    return Unit(role, lambda _: _records.said(role, text), text, begins=begins)


def _call(call: Message, *, begins: bool) -> Unit:
    function = _plain(call.get("function") or {})
    name, given = function.get("name"), function.get("arguments")
    try:
        says = json.dumps(json.loads(given or ""), sort_keys=True)
    except (ValueError, TypeError):
        says = str(given)
    return Unit("call", lambda at: _records.started(at, name, given), (name, says), str(call.get("id") or ""), begins)


def _end(id: str, text: str) -> Unit:
    return Unit("end", lambda call: _records.ended(call, text), id=id)
