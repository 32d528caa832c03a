"""LangChain's agents: a middleware over acpdb.

```python
agent = create_agent(model, tools, middleware=[AcpdbMiddleware(store)])
agent.invoke({"messages": ["why is the build red?"]}, {"configurable": {"thread_id": "run-1"}})
```

The messages of each request are recorded as they pass, each once, and the model's answers as they come; the model is sent what acpdb's
context shows of results that were superseded. The agent's own state stays whole, and so do calls with their results.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Sequence
from threading import Lock
from typing import Any

from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.config import get_config
from langgraph.runtime import Runtime

from .. import Entry, InvalidError, Part, Session, Store
from . import _records
from ._told import Told, Tolds, Unit

HOST = "langchain-agents"

State = AgentState[Any]
Request = ModelRequest[Any]
Response = ModelResponse[Any]


class AcpdbMiddleware(AgentMiddleware[State, Any, Any]):
    """Records the messages of requests and the answers, and prunes what the model is sent.

    Each thread of the agent is a session, by its `thread_id`; with `session_of` what that says of the runtime. Each run of an agent in a tool
    of another one is a session of its own. The middleware stands behind what changes messages, such as summaries, and before what sends a
    request anew.
    """

    def __init__(
        self,
        store: Store,
        *,
        pruned: bool = True,
        project: str | None = None,
        session_of: Callable[[Runtime[Any]], str] | None = None,
    ) -> None:
        super().__init__()
        self.store = store
        self.pruned = pruned
        self.project = project
        self._session_of = session_of or _thread
        self._tolds = Tolds(self.session)
        #: Sessions in which a run began, and nothing of it was told yet.
        self._begun: set[str] = set()
        self._lock = Lock()

    def session(self, key: str) -> Session:
        """The session of a key."""
        return self.store.session(key, host=HOST, project=self.project)

    def before_agent(self, state: State, runtime: Runtime[Any]) -> None:
        """A run begins: its prompt is new, whatever it says."""
        self._begins(self._session_of(runtime))

    async def abefore_agent(self, state: State, runtime: Runtime[Any]) -> None:
        self.before_agent(state, runtime)

    def wrap_model_call(self, request: Request, handler: Callable[[Request], Response]) -> Response:
        """Records what is new, sends what acpdb shows, and records the answer."""
        key = self._session_of(request.runtime)
        response = handler(self._asked(key, request))
        self._tolds.of(key).answered(_answer(response))
        return response

    async def awrap_model_call(self, request: Request, handler: Callable[[Request], Awaitable[Response]]) -> Response:
        key = self._session_of(request.runtime)
        response = await handler(await asyncio.to_thread(self._asked, key, request))
        await asyncio.to_thread(self._tolds.of(key).answered, _answer(response))
        return response

    def _begins(self, key: str) -> None:
        with self._lock:
            self._begun.add(key)

    def _asked(self, key: str, request: Request) -> Request:
        told: Told = self._tolds.of(key)
        system = [] if request.system_message is None else [*_units(request.system_message)]
        each = [[*_units(message)] for message in request.messages]
        with self._lock:
            begins = key in self._begun
            self._begun.discard(key)
        try:
            shown = told.tell([*system, *(unit for some in each for unit in some)], begins=begins)
        except BaseException:
            # The request may be sent again; that a run began is still to be told then.
            if begins:
                self._begins(key)
            raise
        if not self.pruned or not shown:
            return request
        messages, at = [], len(system)
        for message, some in zip(request.messages, each, strict=True):
            # A result is one unit.
            messages.append(message.model_copy(update={"content": shown[at]}) if at in shown else message)
            at += len(some)
        return request.override(messages=messages)


def _thread(runtime: Runtime[Any]) -> str:
    """The thread; and of an agent in a tool of another one, which has the thread's id, too, the place of that call."""
    asked = get_config().get("configurable", {})
    thread = asked.get("thread_id")
    if thread is None or thread == "":
        raise InvalidError(
            'no thread: run the agent with config={"configurable": {"thread_id": ..}}, or give the middleware session_of'
        )
    within, _, _ = str(asked.get("checkpoint_ns") or "").rpartition("|")
    return f"{thread}/{within}" if within else str(thread)


def _answer(response: Response) -> list[Unit]:
    return [unit for message in response.result for unit in _units(message)]


def _units(message: BaseMessage) -> Iterator[Unit]:
    """Prompts, texts, calls and their ends, in order."""
    content: Any = message.content
    match message:
        case ToolMessage():
            failed = message.status == "error"
            yield Unit("end", lambda call: _records.ended(call, content, failed=failed), id=str(message.tool_call_id or ""))
        case AIMessage():
            parts = [*_parts(content)]
            if parts or not message.tool_calls:
                yield Unit("assistant", lambda _: Entry.message("assistant", parts or ""), content, begins=True)
            for number, call in enumerate(message.tool_calls):
                yield _call(call, begins=number == 0 and not parts)
        case HumanMessage():
            yield Unit("user", lambda _: _records.said("user", content), content)
        case SystemMessage():
            yield Unit("system", lambda _: _records.said("system", content), content)
        case _:
            yield Unit("other", lambda _: Entry.host_record(_records.whole(message.type)), (message.type, content))


def _call(call: Any, *, begins: bool) -> Unit:
    name, args = call["name"], call["args"]
    says = json.dumps(args, sort_keys=True, default=str)
    return Unit("call", lambda at: _records.started(at, name, args), (name, says), str(call.get("id") or ""), begins)


def _parts(content: Any) -> Iterator[Part]:
    """What a model said: its texts and thoughts. Calls stand beside its content, too."""
    blocks: Sequence[Any] = [content] if isinstance(content, str) else content
    for block in blocks:
        if isinstance(block, str):
            text, thought, signature = block, None, None
        else:
            text, thought = block.get("text"), block.get("thinking") or block.get("reasoning")
            signature = block.get("signature")
        if isinstance(thought, str):
            yield Part.reasoning(_records.whole(thought), signature if isinstance(signature, str) else None)
        if isinstance(text, str) and text:
            yield Part.text(_records.whole(text))
