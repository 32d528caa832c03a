"""Waking tasks of an event loop when a commit is durable, without a thread and without polling."""

from __future__ import annotations

import asyncio
import os
import weakref
from collections.abc import Generator
from typing import Any

from ._acpdb import Bell, Receipt, Ticket as _Ticket

_loops: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Waking] = weakref.WeakKeyDictionary()


class _Waking:
    """One bell of a loop, and the tasks that wait for it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.bell = Bell()
        self.waiting: list[asyncio.Future[None]] = []
        self._reader = self.bell.take_reader()
        weakref.finalize(self, os.close, self._reader)
        known: weakref.ref[_Waking] = weakref.ref(self)
        loop.add_reader(self._reader, _rung, known, self._reader)


def _rung(known: weakref.ref[_Waking], reader: int) -> None:
    try:
        os.read(reader, 4096)
    except BlockingIOError:
        pass
    waking = known()
    if waking is None:
        return
    waiting, waking.waiting = waking.waiting, []
    for future in waiting:
        if not future.done():
            future.set_result(None)


def receipt(ticket: _Ticket) -> Generator[Any, None, Receipt]:
    """Waits in the running loop until `ticket` is durable."""
    loop = asyncio.get_running_loop()
    waking = _loops.get(loop)
    if waking is None:
        try:
            waking = _loops[loop] = _Waking(loop)
        except NotImplementedError:
            # A loop that cannot watch a file: another thread waits.
            return (yield from loop.run_in_executor(None, ticket.wait).__await__())
    while True:
        done = ticket.poll(waking.bell)
        if done is not None:
            return done
        future: asyncio.Future[None] = loop.create_future()
        waking.waiting.append(future)
        yield from future.__await__()
