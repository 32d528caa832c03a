"""The package for event loops: its stub is made of the sources, and its calls neither hold up a loop nor get lost."""

from __future__ import annotations

import ast
import asyncio
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import acpdb
import pytest
from acpdb import Entry, aio

PACKAGE = Path(acpdb.__file__).resolve().parent
HEADER = '''"""Types of `acpdb.aio`. Made of the sources by tests/test_aio.py: SNAPSHOTS=overwrite writes it anew."""

import os
from collections.abc import AsyncIterator, Generator, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Generic, Literal, Protocol, TypeVar, overload

import acpdb

from . import _shapes as shapes
from ._acpdb import Entry, Receipt
from ._session import Served, Ticket
from ._store import Subscription

class _Closes(Protocol):
    async def close(self) -> None: ...

_C = TypeVar("_C", bound=_Closes)

class _Opened(Generic[_C]):
    def __await__(self) -> Generator[object, None, _C]: ...
    async def __aenter__(self) -> _C: ...
    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None: ...
'''
LEAVING = (
    "(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None: ..."
)


def bare(function: ast.FunctionDef) -> str:
    """A function without its body and its decorators."""
    head = ast.FunctionDef(function.name, function.args, [ast.Expr(ast.Constant(...))], [], function.returns, lineno=1)
    return " ".join(ast.unparse(head).split())


def members(kind: ast.ClassDef) -> Iterator[str]:
    yield f"def __init__(self, plain: acpdb.{kind.name}) -> None: ..."
    for member in kind.body:
        if not isinstance(member, ast.FunctionDef):
            continue
        marks = [mark.id for mark in member.decorator_list if isinstance(mark, ast.Name)]
        if member.name == "__iter__":
            assert isinstance(member.returns, ast.Subscript)
            yield f"def __aiter__(self) -> AsyncIterator[{ast.unparse(member.returns.slice)}]: ..."
        elif member.name == "_repr_html_" or (not member.name.startswith("_") and "property" in marks):
            yield from ("@property",) * ("property" in marks)
            yield bare(member)
        elif not member.name.startswith("_"):
            overloads = [it for it in kind.body if isinstance(it, ast.FunctionDef) and it.name == member.name]
            if len(overloads) > 1 and "overload" not in marks:
                continue
            yield from ("@overload",) * ("overload" in marks)
            yield bare(member) if member.name in ("session", "subscribe") else f"async {bare(member)}"
    if kind.name in ("Store", "Stores"):
        yield f"async def __aenter__(self) -> {kind.name}: ..."
        yield f"async def __aexit__{LEAVING}"


def stub() -> str:
    """The stub, from the sources of the handles and functions that it stands for."""
    classes: list[str] = []
    functions: list[str] = []
    for name in ("_session.py", "_store.py", "_view.py"):
        for thing in ast.parse((PACKAGE / name).read_text()).body:
            if getattr(thing, "name", None) not in aio.__all__:
                continue
            if isinstance(thing, ast.ClassDef):
                classes.append(f"class {thing.name}:\n" + "".join(f"    {line}\n" for line in members(thing)))
            elif isinstance(thing, ast.FunctionDef):
                line = bare(thing)
                if thing.name.startswith("open"):
                    assert thing.returns is not None
                    kind = ast.unparse(thing.returns)
                    functions.append(line.replace(f"-> {kind}:", f"-> _Opened[{kind}]:") + "\n")
                else:
                    functions.append(f"async {line}\n")
    return "\n".join([HEADER, *classes, "".join(functions)])


def test_its_types_are_those_of_the_sources() -> None:
    made, held = stub(), PACKAGE / "aio.pyi"
    if os.environ.get("SNAPSHOTS") == "overwrite":
        source = Path(__file__).resolve().parents[1] / "python" / "acpdb" / "aio.pyi"
        source.write_text(made)
        held.write_text(made)
    assert held.read_text() == made


def test_what_a_store_does_is_done_in_a_loop(tmp_path: Path) -> None:
    async def main() -> None:
        async with aio.open(tmp_path / "store") as store:
            session = store.session("s1", project="shop")
            await session.append(Entry.message("user", "hello"))
            receipt = await (await session.submit(Entry.todos([{"id": "1", "content": "mend it", "status": "pending"}])))
            assert await store.head() == receipt.last_seq == (await session.view()).seq
            served = await (await session.step("t1")).context("anthropic")
            assert b"hello" in served.body
            assert [row["kind"] async for row in await session.view()] == [row["kind"] for row in await session.history()]
            fork = await session.fork()
            assert isinstance(fork, aio.Session) and {it.key async for it in store} == {"s1", fork.key}
            assert session == await store.find_session("s1") != fork and session != store
            assert {session, store.session("s1", project="shop")} == {session}
            assert repr(session).startswith("<acpdb.aio.Session 's1'") and "srcdoc" in session._repr_html_()
            commits = [commit async for commit in store.subscribe(timeout=0)]
            assert commits[-1]["last_seq"] == await store.head()
            with pytest.raises(acpdb.InvalidError, match="surrogate"):
                await session.search("\ud800")
            with pytest.raises(TypeError):
                await session.append("hello")  # type: ignore[arg-type]
            await store.backup(tmp_path / "copy")
        assert store.closed
        with pytest.raises(acpdb.ClosedError):
            await session.history()
        await aio.restore(tmp_path / "copy", tmp_path / "again")
        async with aio.open_all(*await aio.stores_in(tmp_path)) as stores:
            found = await stores.search("hello")
            assert [label async for label in stores] == [label for label, _ in found]
            one = await stores.store(found[0][0])
            assert isinstance(one, aio.Store) and await one.head() > 0
        # One that is open already, and one that is awaited.
        with acpdb.open(tmp_path / "store") as plain:
            assert await aio.Store(plain).names() == plain.names()
        reader = await aio.open(tmp_path / "store", read_only=True)
        await reader.close()

    asyncio.run(main())


class Slow:
    """Tasks that are told only once somebody says so: a call that takes them is under way until then."""

    def __init__(self) -> None:
        self.begun, self.go = threading.Event(), threading.Event()

    def __iter__(self) -> Iterator[dict[str, acpdb._shapes.Json]]:
        self.begun.set()
        assert self.go.wait(30), "nobody said so"
        yield {"id": "1", "status": "in_progress"}

    async def waited_for(self) -> None:
        while not self.begun.is_set():
            await asyncio.sleep(0.001)


def test_a_cancelled_call_goes_on_and_a_loop_is_not_held_up(tmp_path: Path) -> None:
    async def main() -> None:
        async with aio.open(tmp_path / "store") as store:
            session, slow = store.session("s1"), Slow()
            begun = (await session.append(Entry.message("user", "hello"))).last_seq
            task = asyncio.create_task(session.update_tasks(slow))
            await slow.waited_for()
            # The loop runs, and so do other calls.
            assert await store.head() == (await session.view()).seq == begun
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            slow.go.set()
            while await store.head() == begun:
                await asyncio.sleep(0.001)

    asyncio.run(asyncio.wait_for(main(), 60))


def test_a_store_that_is_closed_meanwhile_refuses_or_has_recorded(tmp_path: Path) -> None:
    async def main() -> set[int]:
        store, slow = await aio.open(tmp_path / "store"), Slow()
        session = store.session("s1")
        begun = asyncio.create_task(session.update_tasks(slow))
        await slow.waited_for()
        appends = [asyncio.create_task(session.append(Entry.message("user", str(number)))) for number in range(200)]
        await asyncio.sleep(0.005)
        await store.close()
        slow.go.set()
        ends = await asyncio.gather(begun, *appends, return_exceptions=True)
        kinds = {type(end) for end in ends}
        assert kinds <= {acpdb.ClosedError, acpdb.Receipt} and isinstance(ends[0], acpdb.ClosedError)
        return {end.last_seq for end in ends if isinstance(end, acpdb.Receipt)}

    told = asyncio.run(main())
    with acpdb.open(tmp_path / "store") as store:
        assert told <= {row["seq"] for row in store.session("s1").history()}
        assert store.verify()["verdict"] == "sound"
