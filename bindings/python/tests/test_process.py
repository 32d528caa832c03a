"""Threads, processes, signals and the end of the interpreter."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import acpdb
import pytest
from acpdb import Entry, Store

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def test_threads_append_and_read_at_once(store: Store) -> None:
    def work(number: int) -> int:
        session = store.session(f"s{number % 3}")
        for turn in range(20):
            session.append(Entry.message("user", f"{number}:{turn}", origin=f"{number}:{turn}"))
            session.view().context(last=1)
        return number

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(8))) == list(range(8))
    assert sum(len(store.session(f"s{number}").history()) for number in range(3)) == 160
    assert store.verify(deep=True)["verdict"] == "sound"


def test_a_wait_leaves_other_threads_running(store: Store) -> None:
    feed = store.subscribe(store.head())
    waiter = threading.Thread(target=feed.next_within, args=(30,))
    waiter.start()
    # If the wait held the interpreter's lock, nothing would be appended, and the wait would not end.
    store.session("s1").append(Entry.message("user", "hello"))
    waiter.join(20)
    assert not waiter.is_alive()


def test_closing_ends_a_wait_in_another_thread(store: Store) -> None:
    caught: list[BaseException] = []

    def wait() -> None:
        try:
            for _ in store.subscribe(store.head()):
                pass
        except acpdb.Error as error:
            caught.append(error)

    waiter = threading.Thread(target=wait)
    waiter.start()
    store.close()
    waiter.join(20)
    assert not waiter.is_alive() and isinstance(caught[0], acpdb.ClosedError)


FORK = """
import os, sys, acpdb
store = acpdb.open(sys.argv[1])
session = store.session("s1")
session.append(acpdb.Entry.message("user", "parent"))
view, feed, ticket = session.view(), store.subscribe(), session.submit(acpdb.Entry.message("user", "more"))
child = os.fork()
if child == 0:
    said = []
    for use in (store.head, view.context, lambda: feed.next_within(0), ticket.wait,
                lambda: session.append(acpdb.Entry.message("user", "child"))):
        try:
            use()
            said.append("used")
        except acpdb.ForkedError as error:
            said.append(error.code if "open the store again" in str(error) else str(error))
    store.close()
    del store, session, view, feed, ticket
    with acpdb.open(sys.argv[1]) as own:
        own.session("s1").append(acpdb.Entry.message("user", "child"))
    print(said, flush=True)
    sys.exit(0)
_, status = os.waitpid(child, 0)
ticket.wait()
session.append(acpdb.Entry.message("user", "parent again"))
store.close()
with acpdb.open(sys.argv[1]) as store:
    texts = [item["output"]["text"] for item in store.session("s1").context()["items"]]
print(os.waitstatus_to_exitcode(status), sorted(texts))
"""


def test_a_child_is_told_that_the_handle_is_its_parents(python: Run) -> None:
    done = python(FORK)
    assert done.returncode == 0, done.stderr
    child, parent = done.stdout.splitlines()
    assert child == str(["forked"] * 5)
    assert parent == "0 ['child', 'more', 'parent', 'parent again']"


MULTIPROCESSING = """
import multiprocessing, sys, acpdb
def work(number):
    with acpdb.open(sys.argv[1]) as store:
        for turn in range(20):
            store.session("s1").append(acpdb.Entry.message("user", f"{number}:{turn}"))
if __name__ == "__main__":
    with acpdb.open(sys.argv[1]) as store:
        workers = [multiprocessing.get_context("fork").Process(target=work, args=(n,)) for n in range(4)]
        [worker.start() for worker in workers]
        [worker.join() for worker in workers]
        print([worker.exitcode for worker in workers], len(store.session("s1").history()), store.verify()["verdict"])
"""


def test_processes_append_to_one_store(python: Run) -> None:
    done = python(MULTIPROCESSING)
    assert done.stdout.strip() == "[0, 0, 0, 0] 80 sound", done.stderr


ENDS = {
    "open handles": "",
    "a ticket on its way": "ticket = store.session('s1').submit(acpdb.Entry.message('user', 'late'))",
    "a thread that waits": """
import threading
threading.Thread(target=lambda: list(store.subscribe(store.head())), daemon=True).start()
""",
    "a loop that was given up": """
import asyncio
async def main():
    asyncio.ensure_future(anext(aiter(store.subscribe(store.head()))))
    ticket = store.session('s1').submit(acpdb.Entry.message('user', 'x'))
    await ticket
asyncio.run(main())
""",
    "a handle in a module's global that outlives it": "import builtins; builtins.kept = (store, store.session('s1'))",
    "an exit in a callback": """
import atexit
atexit.register(lambda: store.session('s1').append(acpdb.Entry.message('user', 'last words')))
""",
}


@pytest.mark.parametrize("what", ENDS)
def test_the_interpreter_ends_with(python: Run, what: str) -> None:
    script = "import sys, acpdb\nstore = acpdb.open(sys.argv[1])\n"
    script += "store.session('s1').append(acpdb.Entry.message('user', 'hello'))\n" + ENDS[what] + "\nprint('end')\n"
    done = python(script)
    assert (done.returncode, done.stdout.strip()) == (0, "end"), done.stderr
    assert "panicked" not in done.stderr and "Traceback" not in done.stderr


INTERRUPTED = """
import os, signal, sys, threading, acpdb
# What a shell starts in the background ignores the signal, and so would Python.
signal.signal(signal.SIGINT, signal.default_int_handler)
store = acpdb.open(sys.argv[1])
feed = store.subscribe(store.head())
threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    for commit in feed:
        pass
except KeyboardInterrupt:
    store.session("s1").append(acpdb.Entry.message("user", "after"))
    print("interrupted", len(store.session("s1").history()))
"""


def test_ctrl_c_ends_a_wait(python: Run) -> None:
    done = python(INTERRUPTED)
    assert done.stdout.strip() == "interrupted 1", done.stderr


def test_an_exception_while_facts_are_gathered_records_nothing(store: Store) -> None:
    def entries() -> "list[Entry]":
        made = [Entry.message("user", "one")]
        raise ZeroDivisionError(made)

    session, head = store.session("s1"), store.head()
    with pytest.raises(ZeroDivisionError):
        session.append(*entries())
    with pytest.raises(RuntimeError, match="in the middle"):
        with acpdb.open(store.path) as other:
            other.session("s1").append(Entry.message("user", "before"))
            raise RuntimeError("in the middle")
    assert other.closed and store.head() > head


TWO_COPIES = """
import os, shutil, sys, tempfile, threading
import acpdb as one
folder = tempfile.mkdtemp()
shutil.copytree(os.path.dirname(one.__file__), os.path.join(folder, "acpdb_two"))
sys.path.insert(0, folder)
import acpdb_two as two
assert two._acpdb.Store is not one._acpdb.Store
def work(acpdb, name):
    with acpdb.open(sys.argv[1], lock_wait=60.0) as store:
        for turn in range(30):
            store.session("s1").append(acpdb.Entry.message("user", f"{name}:{turn}"))
threads = [threading.Thread(target=work, args=it) for it in ((one, "one"), (two, "two"), (two, "three"))]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
with one.open(sys.argv[1]) as store:
    try:
        store.session("s1").append(two.Entry.message("user", "of the other"))
    except TypeError as error:
        print(error)
    print(len(store.session("s1").history()), store.verify(deep=True)["verdict"])
try:
    two.open(sys.argv[1] + ".none", create=False)
except one.Error:
    print("an error of the other")
except two.NotAStoreError as error:
    print(error.code)
"""


def test_two_copies_of_the_package_in_one_process_share_a_store(python: Run) -> None:
    """Each has an engine of its own: what keeps one copy's threads apart says nothing to the other, so locks of files have to. The errors of
    a copy were those of the other one, so that its users did not catch them."""
    done = python(TWO_COPIES)
    assert done.stdout.splitlines() == ["what is appended is an acpdb.Entry, not Entry", "90 sound", "not_a_store"], done.stdout + done.stderr
