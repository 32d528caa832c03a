"""The store: open, sessions, questions over all of them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Literal, TypeVar, cast

from . import _shapes as shapes
from ._acpdb import (
    Entry,
    Store as NativeStore,
    Stores as NativeStores,
    Subscription as NativeSubscription,
    lint_request,
    point,
    restore_backup,
    stores_in as found_stores,
    verify_store,
)
from ._errors import InvalidError, NotFoundError
from ._session import Session
from ._typed import as_object, checked, typed

#: How long one wait of an iterator is, in seconds; it then waits again.
_WAIT = 0.25

C = TypeVar("C", bound="Closing")


class Subscription:
    """Commits of every process, each once, in order, as they become durable: an iterator, and an asynchronous one.

    It pulls: a slow reader slows no writer. With a `timeout` it ends when no commit came for so many seconds.
    """

    __slots__ = ("_native", "_timeout")

    def __init__(self, native: NativeSubscription, timeout: float | None) -> None:
        self._native = native
        self._timeout = timeout

    @property
    def next_seq(self) -> int:
        """The first seq that was not handed out: where another subscription would go on."""
        return self._native.next_seq

    def next_within(self, seconds: float) -> shapes.Commit | None:
        """The next commit; None if none came within so many seconds. 0 only looks."""
        return cast("shapes.Commit | None", self._native.next_within(seconds))

    def __iter__(self) -> Iterator[shapes.Commit]:
        return self

    def __next__(self) -> shapes.Commit:
        if self._timeout is not None:
            commit = self.next_within(self._timeout)
            if commit is None:
                raise StopIteration
            return commit
        while True:
            commit = self.next_within(_WAIT)
            if commit is not None:
                return commit

    async def __aiter__(self) -> AsyncIterator[shapes.Commit]:
        loop = asyncio.get_running_loop()
        waiter: ThreadPoolExecutor | None = None
        try:
            while True:
                commit = self.next_within(0)
                if commit is None:
                    waiter = waiter or ThreadPoolExecutor(1, "acpdb-subscription")
                    end = None if self._timeout is None else loop.time() + self._timeout
                    while commit is None:
                        left = _WAIT if end is None else min(_WAIT, end - loop.time())
                        if left <= 0:
                            return
                        commit = await loop.run_in_executor(waiter, self.next_within, left)
                yield commit
        finally:
            if waiter is not None:
                waiter.shutdown(wait=False, cancel_futures=True)


class Closing:
    """What `with` and `async with` close at their end."""

    __slots__ = ()

    def close(self) -> None:
        """Lets go what it holds."""
        raise NotImplementedError

    def __enter__(self: C) -> C:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self: C) -> C:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        # The end of another thread's commit may have to be waited for.
        await asyncio.to_thread(self.close)


@typed
class Store(Closing):
    """An open store, made by `acpdb.open`. May be used by all threads of the process; close it, or use `with`."""

    __slots__ = ("_native", "__weakref__")

    def __init__(self, native: NativeStore) -> None:
        self._native = native

    def __iter__(self) -> Iterator[Session]:
        """The sessions, in order of their first events."""
        return (self.session(name["id"], host=name["host"]) for name in self.names() if name["scope"] == "session")

    def close(self) -> None:
        """Closes the store for all handles that came from it. What was appended is durable already. Twice is once."""
        self._native.close()

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._native.closed

    @property
    def path(self) -> str:
        """The folder it lies in."""
        return os.fspath(self._native.path)

    @property
    def id(self) -> str:
        """Id of the store."""
        return self._native.id

    def head(self) -> int:
        """The newest durable seq, of any process."""
        return cast(int, self._native.call("head"))

    def sync(self) -> None:
        """Makes durable what was acknowledged under `durability="os"`."""
        self._native.call("sync")

    def info(self) -> shapes.StoreInfo:
        """What the store holds, in figures."""
        return cast(shapes.StoreInfo, self._native.call("info"))

    # Sessions

    def session(
        self,
        key: str,
        *,
        host: str = "acpdb",
        project: str | None = None,
        cwd: str | None = None,
        title: str | None = None,
        parent: str | None = None,
        parent_call: str | None = None,
    ) -> Session:
        """A handle on one session. Nothing is read or written until it is used.

        `host` says whose tools it calls; `project` whose memory it shares; `parent` and `parent_call` which session and call
        started it.
        """
        names = {"host": host, "project": project, "cwd": cwd, "title": title, "parent": parent, "parent_call": parent_call}
        return Session(self._native.session(key=key, **names))

    def sessions(self, filter: str = "") -> list[shapes.SessionRow]:
        """Sessions in a line each, in order of their first events; those that hold what a filter lets pass."""
        return cast("list[shapes.SessionRow]", self._native.call("sessions", filter=filter))

    def names(self) -> list[shapes.StreamName]:
        """Names of all sessions and projects, without a look into them."""
        return cast("list[shapes.StreamName]", self._native.call("names"))

    def find_session(self, name: str) -> Session:
        """The session of this key, of any host, or whose key begins so."""
        key, host = self._native.call("find_session", name=name)
        return self.session(key, host=host)

    # Ask

    def search(
        self,
        *patterns: str,
        filter: str = "",
        regex: bool = False,
        word: bool = False,
        case: bool = False,
        lines: int = 0,
        limit: int = 1000,
    ) -> shapes.Found:
        """Items of all sessions whose texts hold all patterns, the newest sessions first.

        >>> import acpdb, tempfile
        >>> with acpdb.open(tempfile.mkdtemp()) as store:
        ...     _ = store.session("s1").append(acpdb.Entry.message("user", "why is the build red?"))
        ...     [(hit["session"], hit["matches"]) for hit in store.search("build")["items"]]
        [('s1', 1)]
        """
        looked = {"filter": filter, "regex": regex, "word": word, "case": case, "lines": lines, "limit": limit}
        return cast(shapes.Found, self._native.call("search", patterns=patterns, **looked))

    def event(self, seq: int) -> shapes.EventRow | None:
        """An event in a line; None if there is none."""
        return cast("shapes.EventRow | None", self._native.call("event", seq=seq))

    def subscribe(self, after: int = 0, *, timeout: float | None = None) -> Subscription:
        """Follows the store behind a seq: first what is there, then what comes.

        >>> import acpdb, tempfile
        >>> with acpdb.open(tempfile.mkdtemp()) as store:
        ...     head = store.head()
        ...     _ = store.session("s1").append(acpdb.Entry.message("user", "hello"))
        ...     for commit in store.subscribe(head, timeout=0):
        ...         print([event["kind"] for event in commit["events"]])
        ['session_opened', 'message_recorded']
        """
        return Subscription(self._native.subscribe(after), timeout)

    # Remember

    def memory(
        self, *, project: str | None = None, at: shapes.At | None = None, all: bool = False
    ) -> list[shapes.MemoryRow]:
        """What a project is to remember; with `all` everything that it ever was told. Without a name, the only project's."""
        return cast("list[shapes.MemoryRow]", self._native.call("memory", project=project, at=point(at), all=all))

    def memory_head(self, *, project: str | None = None) -> int:
        """The newest event that what a project is to remember may rest on: as long as it is the same, so is the memory. 0 if there is none."""
        return cast(int, self._native.call("memory_head", project=project))

    def remember(self, entry: Entry, *, project: str | None = None) -> shapes.MemoryReceipt:
        """Remembers what `Entry.memory` says for a project, which comes about by it."""
        return cast(shapes.MemoryReceipt, self._native.remember(project, entry))

    def retract(self, item: str, *, project: str | None = None, reason: str | None = None) -> shapes.MemoryReceipt:
        """The memory item no longer holds, and nothing takes its place."""
        return cast(shapes.MemoryReceipt, self._native.call("retract", project=project, item=item, reason=reason))

    def reinforce(self, item: str, *, project: str | None = None) -> shapes.MemoryReceipt:
        """The memory item was confirmed, or used."""
        return cast(shapes.MemoryReceipt, self._native.call("reinforce", project=project, item=item))

    # Weigh, check, move

    def simulate(
        self,
        *,
        session: str | None = None,
        policies: Sequence[str] = (),
        modes: Sequence[shapes.Mode] = (),
        price: str = "anthropic",
    ) -> list[shapes.SimulationRow]:
        """What policies and modes would have cost: of one session, or of all."""
        rows = self._native.call("simulate", session=session, policies=policies, modes=modes, price=price)
        return cast("list[shapes.SimulationRow]", rows)

    def policy(self) -> dict[str, shapes.Json]:
        """The policy in force for sessions that set none of theirs."""
        return cast("dict[str, shapes.Json]", self._native.call("policy"))

    def set_policy(self, policy: str | Mapping[str, shapes.Json], *, reason: str | None = None) -> int:
        """Sets the policy for what comes, by a preset's name or as data; its seq."""
        return cast(int, self._native.call("set_policy", policy=as_object(policy), reason=reason))

    def verify(self, *, deep: bool = False) -> shapes.Report:
        """Checks every digest and link of the store; `deep` also what was concluded."""
        return cast(shapes.Report, self._native.call("verify", deep=deep))

    def erase(self, item: str, *, reason: str = "", by: str = "host", dry_run: bool = False) -> shapes.EraseReport:
        """Erases what an item holds for good, with all equal content, in every session. With `dry_run` only says what would be hit.

        That it was done stays on record, and so do digests, lengths, ids, names of tools and paths. Copies elsewhere stay: backups, and
        quotations in other texts.

        >>> import acpdb, tempfile
        >>> with acpdb.open(tempfile.mkdtemp()) as store:
        ...     session = store.session("s1")
        ...     _ = session.append(acpdb.Entry.message("user", "my password is swordfish"))
        ...     item = session.history()[0]["item"]
        ...     report = store.erase(item, reason="a secret")
        ...     (len(report["hit"]), store.search("swordfish")["items"], store.verify()["verdict"])
        (1, [], 'sound')
        """
        return cast(shapes.EraseReport, self._native.call("erase", item=item, by=by, reason=reason, dry_run=dry_run))

    def erase_records(self, *seqs: int, reason: str = "", by: str = "host") -> shapes.EraseReport:
        """Erases host's own records, by the seqs that `Session.records` has, in one go. An equal record that is not named stays,
        and may be recorded again."""
        return cast(shapes.EraseReport, self._native.call("erase_records", seqs=seqs, by=by, reason=reason))

    def seal(self, *, active: bool = False) -> shapes.SealReport:
        """Packs all complete segments of the log, to about a quarter of their size; with `active` also the one that is being written.

        An open store does this by itself while it is idle, without the one that is being written. Answers are the same either way."""
        return cast(shapes.SealReport, self._native.call("seal", active=active))

    def backup(self, folder: str | os.PathLike[str]) -> shapes.Backup:
        """Copies the store to a folder while others go on writing, and verifies the copy. The folder is empty, is not there, or has an older
        copy, whose place the new one takes. `restore` makes a store of it.

        >>> import acpdb, tempfile
        >>> folder = tempfile.mkdtemp()
        >>> with acpdb.open(folder + "/store") as store:
        ...     _ = store.session("s1").append(acpdb.Entry.message("user", "hello"))
        ...     store.backup(folder + "/copy")["report"]["verdict"]
        'sound'
        >>> acpdb.restore(folder + "/copy", folder + "/again")["head"] == acpdb.open(folder + "/again").head()
        True
        """
        return cast(shapes.Backup, self._native.call("backup", folder=os.fspath(folder)))

    def export(self, format: Literal["jsonl"] = "jsonl") -> bytes:
        """The items of all sessions as JSON lines, with their texts and states."""
        if format != "jsonl":
            raise InvalidError("a store is exported as 'jsonl'; Session.export has more formats")
        return self._native.export()

    def __repr__(self) -> str:
        return "<acpdb.Store, closed>" if self.closed else f"<acpdb.Store {self.path!r}>"


@checked
def open(
    path: str | os.PathLike[str],
    *,
    read_only: bool = False,
    create: bool = True,
    durability: Literal["sync", "os"] = "sync",
    lock_wait: float = 5.0,
    index: bool = True,
    redact: bool = False,
    any_file_system: bool = False,
    key_file: str | os.PathLike[str] | None = None,
    passphrase: str | None = None,
) -> Store:
    """Opens the store in a folder, making or recovering it as needed.

    With `durability="os"` an append returns before the disk has it. `lock_wait` is how many seconds an append waits for another
    process. `redact` takes secrets out of what is recorded. `read_only` changes nothing in the folder. `key_file` or `passphrase` opens an
    encrypted store, and one that is made then is encrypted; a plain one is refused.

    >>> import acpdb, tempfile
    >>> with acpdb.open(tempfile.mkdtemp()) as store:
    ...     session = store.session("s1")
    ...     _ = session.append(acpdb.Entry.message("user", "hello"))
    ...     session.context()["items"][0]["output"]["text"]
    'hello'
    """
    return Store(
        NativeStore(
            path,
            read_only=read_only,
            create=create,
            durability=durability,
            lock_wait=lock_wait,
            index=index,
            redact=redact,
            **_reading(any_file_system, key_file, passphrase),
        )
    )


def _reading(any_file_system: bool, key_file: str | os.PathLike[str] | None, passphrase: str | None) -> dict[str, object]:
    key = None if key_file is None else os.fspath(key_file)
    return {"any_file_system": any_file_system, "key_file": key, "passphrase": passphrase}


@checked
def open_remote(
    url: str,
    name: str,
    folder: str | os.PathLike[str],
    *,
    owner: str = "acpdb",
    create: bool = True,
    lock_wait: float = 5.0,
    index: bool = True,
    redact: bool = False,
    any_file_system: bool = False,
    key_file: str | os.PathLike[str] | None = None,
    passphrase: str | None = None,
) -> Store:
    """Opens the store of a name, such as a session's, at a URL, and takes it over from the worker that has it: that one gets a `FencedError`.

    `url` is `file:///FOLDER`, on any mounted disk, or `s3://BUCKET/PREFIX`, with the credentials of `AWS_*` or of the user's profile. The
    store is written below `folder`, on a local disk, which may be lost: when an append returns, the commit is at the remote. `owner` names
    the worker for people. With a key, objects of a new store are encrypted there, and a store that is there has to be encrypted.

    >>> import acpdb, tempfile
    >>> url = "file://" + tempfile.mkdtemp()
    >>> def worker() -> acpdb.Store:
    ...     return acpdb.open_remote(url, "session-4711", tempfile.mkdtemp())
    >>> first = worker()
    >>> _ = first.session("4711").append(acpdb.Entry.message("user", "hello"))
    >>> with worker() as second:
    ...     len(second.session("4711").history())
    1
    >>> try:
    ...     _ = first.session("4711").append(acpdb.Entry.message("user", "too late"))
    ... except acpdb.FencedError:
    ...     print("another worker has it")
    another worker has it
    """
    return Store(
        NativeStore.beyond(
            folder,
            url=url,
            name=name,
            owner=owner,
            create=create,
            lock_wait=lock_wait,
            index=index,
            redact=redact,
            **_reading(any_file_system, key_file, passphrase),
        )
    )


@typed
class Stores(Closing, Mapping[str, Store]):
    """Several stores that are read as one, made by `open_all`: a mapping of labels to stores, each opened when it is asked for.

    Of stores that are copies of each other only the longest is one of them.
    """

    __slots__ = ("_members", "_native")

    def __init__(self, native: NativeStores) -> None:
        self._native = native
        self._members = native.members()

    def __getitem__(self, label: str) -> Store:
        try:
            return self.store(label)
        except NotFoundError as error:
            raise KeyError(str(error)) from None

    def __contains__(self, label: object) -> bool:
        # A mapping's own answer would open the store.
        return any(member["label"] == label for member in self.members)

    def __iter__(self) -> Iterator[str]:
        return (member["label"] for member in self.members)

    def __len__(self) -> int:
        return len(self.members)

    @property
    def members(self) -> list[shapes.StoreMember]:
        """The stores, in the order in which they were given."""
        return cast("list[shapes.StoreMember]", self._members["members"])

    @property
    def copies(self) -> list[shapes.StoreMember]:
        """Stores that are left out, since another one holds all of them."""
        return cast("list[shapes.StoreMember]", self._members["copies"])

    @property
    def forks(self) -> list[shapes.StoreFork]:
        """Stores that are one up to a seq, and went on apart: both are there."""
        return cast("list[shapes.StoreFork]", self._members["forks"])

    def store(self, label: str) -> Store:
        """The store of a label, opened to be read."""
        return Store(self._native.get(label))

    def sessions(self, filter: str = "") -> list[tuple[str, shapes.SessionRow]]:
        """Sessions of all stores, each with the label of its store; see `Store.sessions`."""
        return [(label, row) for label, store in self.items() for row in store.sessions(filter)]

    def search(
        self,
        *patterns: str,
        filter: str = "",
        regex: bool = False,
        word: bool = False,
        case: bool = False,
        lines: int = 0,
        limit: int = 1000,
    ) -> list[tuple[str, shapes.Hit]]:
        """Items of all stores whose texts hold all patterns, each with the label of its store; see `Store.search`."""
        found: list[tuple[str, shapes.Hit]] = []
        for label, store in self.items():
            answer = store.search(
                *patterns, filter=filter, regex=regex, word=word, case=case, lines=lines, limit=limit - len(found)
            )
            found += [(label, hit) for hit in answer["items"]]
            if len(found) >= limit:
                break
        return found

    def close(self) -> None:
        """Lets all stores go. One that is asked for later is opened again."""
        self._native.release()

    def __repr__(self) -> str:
        return f"<acpdb.Stores {', '.join(self)}>"


@checked
def open_all(
    *paths: str | os.PathLike[str],
    any_file_system: bool = False,
    key_file: str | os.PathLike[str] | None = None,
    passphrase: str | None = None,
) -> Stores:
    """Opens the stores in several folders, to read them as one. With a key all of them are encrypted.

    >>> import acpdb, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> for name in ("laptop", "server"):
    ...     with acpdb.open(f"{folder}/{name}") as store:
    ...         _ = store.session("s1").append(acpdb.Entry.message("user", f"hello from the {name}"))
    >>> with acpdb.open_all(*acpdb.stores_in(folder)) as stores:
    ...     [(label, hit["session"]) for label, hit in stores.search("hello")]
    [('laptop', 's1'), ('server', 's1')]
    """
    return Stores(NativeStores(paths, **_reading(any_file_system, key_file, passphrase)))


@checked
def stores_in(folder: str | os.PathLike[str]) -> list[str]:
    """The stores in a folder, in order of names: its subfolders that are stores, or projects with a store."""
    return [os.fspath(path) for path in found_stores(folder)]


@checked
def restore(
    backup: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    *,
    any_file_system: bool = False,
    key_file: str | os.PathLike[str] | None = None,
    passphrase: str | None = None,
) -> shapes.Backup:
    """Makes a store in a folder from a backup, and verifies it. The backup stays."""
    return cast(shapes.Backup, restore_backup(backup, folder, **_reading(any_file_system, key_file, passphrase)))


@checked
def verify(path: str | os.PathLike[str], *, deep: bool = False) -> shapes.Report:
    """Checks every digest and link of the store in a folder, without opening it: also of one that cannot be opened."""
    return cast(shapes.Report, verify_store(path, deep))


@checked
def lint(
    body: bytes | str | Mapping[str, shapes.Json],
    format: shapes.RequestFormat,
    *,
    model: str | None = None,
    previous: bytes | None = None,
) -> list[shapes.Finding]:
    """What a provider would refuse of the body of a request; empty if nothing.

    >>> import acpdb
    >>> answer = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "?"}]}
    >>> findings = acpdb.lint({"model": "m", "max_tokens": 1, "messages": [answer]}, "anthropic")
    >>> [finding["pointer"] for finding in findings]
    ['/messages/0/content/0/tool_use_id']
    """
    return cast("list[shapes.Finding]", lint_request(as_object(body), format, model, previous))
