"""The package for event loops: the same names, and what may wait for a disk or for another process is awaited.

>>> import asyncio, tempfile
>>> from acpdb import Entry, aio
>>> async def main() -> list[str]:
...     async with aio.open(tempfile.mkdtemp()) as store:
...         session = store.session("s1")
...         await session.append(Entry.message("user", "hello"))
...         return [row["kind"] async for row in await session.view()]
>>> asyncio.run(main())
['text']

Each call runs in a thread of the loop. One that was awaited is done before the next; calls of several tasks come in any order. A call whose
task is cancelled goes on: what it records is recorded. `aio.Store(store)` is a store that is open already, for event loops.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Generator
from functools import wraps
from typing import Any

import acpdb

__all__ = ["Session", "Step", "Store", "Stores", "View"]
__all__ += ["lint", "open", "open_all", "open_remote", "restore", "stores_in", "verify"]

#: They make a handle, and read nothing.
_AT_ONCE = ("session", "subscribe")


class _Handle:
    """What every handle for event loops has beside the operations of the one that it stands for."""

    __slots__ = ("_plain", "__weakref__")

    def __init__(self, plain: Any) -> None:
        self._plain = plain

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Handle) and self._plain == other._plain

    def __hash__(self) -> int:
        return hash(self._plain)

    def __repr__(self) -> str:
        return repr(self._plain).replace("<acpdb.", "<acpdb.aio.", 1)


class _Opened:
    """A store that is on its way: awaited, or the subject of `async with`."""

    __slots__ = ("_call", "_store")

    def __init__(self, call: Callable[[], Any]) -> None:
        self._call = call

    def __await__(self) -> Generator[Any, None, Any]:
        return self._call().__await__()

    async def __aenter__(self) -> Any:
        self._store = await self
        return self._store

    async def __aexit__(self, *_: object) -> None:
        await self._store.close()


def _dressed(value: Any) -> Any:
    kind = _KINDS.get(type(value))
    return value if kind is None else kind(value)


def _operation(work: Callable[..., Any]) -> Any:
    """A method for a method of the other handle, which runs in a thread."""

    @wraps(work)
    async def call(self: _Handle, *given: Any, **named: Any) -> Any:
        return _dressed(await asyncio.to_thread(work, self._plain, *given, **named))

    @wraps(work)
    def at_once(self: _Handle, *given: Any, **named: Any) -> Any:
        return _dressed(work(self._plain, *given, **named))

    return at_once if work.__name__ in _AT_ONCE else call


def _function(work: Callable[..., Any]) -> Any:
    @wraps(work)
    async def call(*given: Any, **named: Any) -> Any:
        return _dressed(await asyncio.to_thread(work, *given, **named))

    @wraps(work)
    def opened(*given: Any, **named: Any) -> _Opened:
        return _Opened(lambda: call(*given, **named))

    return opened if work.__name__.startswith("open") else call


async def _each(self: _Handle) -> AsyncIterator[Any]:
    for one in await asyncio.to_thread(list, self._plain):
        yield _dressed(one)


async def _entered(self: Any) -> Any:
    return self


async def _left(self: Any, *_: object) -> None:
    await self.close()


def _handle(plain: type) -> Any:
    """The class for event loops of another one: all that is public in that, and what Python asks for by names of its own."""
    members: dict[str, Any] = {"__slots__": (), "__doc__": plain.__doc__, "__module__": __name__}
    for name, member in vars(plain).items():
        if isinstance(member, property):
            members[name] = property(lambda self, name=name: getattr(self._plain, name), doc=member.__doc__)
        elif name == "_repr_html_":
            members[name] = lambda self: self._plain._repr_html_()
        elif name == "__iter__":
            members["__aiter__"] = _each
        elif not name.startswith("_") and callable(member):
            members[name] = _operation(member)
    if "close" in members:
        members |= {"__aenter__": _entered, "__aexit__": _left}
    return type(plain.__name__, (_Handle,), members)


Session = _handle(acpdb.Session)
Step = _handle(acpdb.Step)
Store = _handle(acpdb.Store)
Stores = _handle(acpdb.Stores)
View = _handle(acpdb.View)
_KINDS: dict[type, Any] = {
    acpdb.Session: Session,
    acpdb.Step: Step,
    acpdb.Store: Store,
    acpdb.Stores: Stores,
    acpdb.View: View,
}

lint = _function(acpdb.lint)
open = _function(acpdb.open)
open_all = _function(acpdb.open_all)
open_remote = _function(acpdb.open_remote)
restore = _function(acpdb.restore)
stores_in = _function(acpdb.stores_in)
verify = _function(acpdb.verify)
