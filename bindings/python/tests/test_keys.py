"""Encrypted stores: made and opened by a key file or a passphrase, and what is said without them."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import acpdb
import pytest
from acpdb import Entry

SAID = "a prompt for two"
WORDS = "correct horse"


def write(path: Path, **key: Any) -> None:
    """A session with one message."""
    with acpdb.open(path, **key) as store:
        store.session("s1").append(Entry.message("user", SAID))
        assert store.info()["encrypted"] is bool(key)


def read(path: Path, **key: Any) -> str:
    with acpdb.open(path, read_only=True, **key) as store:
        return str(store.session("s1").context())


def keys(folder: Path) -> list[dict[str, Any]]:
    """Both ways, as `open` takes them."""
    return [{"key_file": folder / "my.key"}, {"key_file": str(folder / "other.key")}, {"passphrase": WORDS}]


@pytest.mark.parametrize("number", range(3))
def test_an_encrypted_store_is_read_with_its_key_and_nothing_stands_in_its_files(tmp_path: Path, number: int) -> None:
    key, path = keys(tmp_path)[number], tmp_path / "store"
    write(path, **key)
    for file in path.rglob("*"):
        assert file.is_dir() or SAID.encode() not in file.read_bytes(), file
    assert SAID in read(path, **key)
    with acpdb.open(path, **key) as store:
        store.session("s1").append(Entry.message("user", "more"))
        assert len(store.session("s1").context()["items"]) == 2
        assert store.search("prompt")["items"][0]["session"] == "s1"
        assert store.verify(deep=True)["verdict"] == "sound"
    # Whether it was changed can be seen by all.
    assert acpdb.verify(path, deep=True)["verdict"] == "sound"


def test_a_key_file_is_made_with_its_store_for_its_owner_alone_and_never_for_another(tmp_path: Path) -> None:
    """`open(path, key_file=..)` of a new store said that there is no key file, and nothing but the program could make one: a
    user of the package alone could not use key files at all. It is made with the store, and only then."""
    key, path = tmp_path / "my.key", tmp_path / "store"
    with pytest.raises(acpdb.LockedError, match="there is no key .*my.key"):
        acpdb.open(path, key_file=key, create=False)
    write(path, key_file=key)
    if os.name == "posix":
        assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert [file.name for file in tmp_path.iterdir() if file.name != "store"] == ["my.key"]
    before = key.read_bytes()
    write(tmp_path / "second", key_file=key)
    assert key.read_bytes() == before
    # For a store that is there, no other key is made in the place of one that is lost.
    key.rename(tmp_path / "away")
    with pytest.raises(acpdb.LockedError, match="put it back"):
        acpdb.open(path, key_file=key)
    assert not key.exists()
    assert SAID in read(path, key_file=tmp_path / "away")


def test_all_that_make_one_store_at_once_have_one_key(tmp_path: Path) -> None:
    """The file of a key was made and then written: another process could read it between the two and take it for no key."""

    def make(number: int) -> None:
        with acpdb.open(tmp_path / "store", key_file=tmp_path / "my.key", lock_wait=60.0) as store:
            store.session("s1").append(Entry.message("user", f"of {number}"))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(make, range(8)))
    with acpdb.open(tmp_path / "store", key_file=tmp_path / "my.key") as store:
        assert len(store.session("s1").context()["items"]) == 8
    assert [file.name for file in tmp_path.iterdir() if file.name != "store"] == ["my.key"]


LOCKED: list[tuple[str, dict[str, Any], str]] = [
    ("another passphrase", {"passphrase": "correct house"}, "is wrapped by key"),
    ("a key file that is not there", {"key_file": "none.key"}, "there is no key none.key"),
    ("a key file of another store", {"key_file": "other.key"}, "other.key"),
    ("a file that is no key", {"key_file": "notes.txt"}, "this is no key: acpdb-key-1"),
    ("a folder as key file", {"key_file": "."}, "cannot be used"),
    ("a key file that others may read", {"key_file": "loose.key"}, "chmod 600"),
]


@pytest.mark.parametrize("what", range(len(LOCKED)), ids=[row[0] for row in LOCKED])
def test_what_does_not_open_a_store_is_told_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: int) -> None:
    _, key, says = LOCKED[what]
    monkeypatch.chdir(tmp_path)
    write(Path("store"), key_file="my.key")
    write(Path("other"), key_file="other.key")
    Path("notes.txt").write_text("no key\n")
    Path("notes.txt").chmod(0o600)
    Path("loose.key").write_bytes(Path("my.key").read_bytes())
    Path("loose.key").chmod(0o644)
    with pytest.raises(acpdb.LockedError, match=says) as caught:
        acpdb.open("store", **key)
    assert caught.value.code == "locked"
    assert WORDS not in str(caught.value) and "correct house" not in str(caught.value)


def test_without_a_key_an_encrypted_store_says_that_it_needs_one(tmp_path: Path) -> None:
    """The error named the number of a key and not what to do about it."""
    path = tmp_path / "store"
    write(path, passphrase=WORDS)
    with acpdb.open(path, read_only=True) as store:
        assert store.verify()["verdict"] == "sound"
        uses: list[Callable[[], object]] = [
            lambda: store.session("s1").context(),
            lambda: store.session("s1").history(),
            lambda: store.export(),
        ]
        for use in uses:
            with pytest.raises(acpdb.LockedError, match="was not given; open the store with its key file or its passphrase"):
                use()


REFUSED: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"passphrase": "short"}, acpdb.InvalidError, "8 bytes at least"),
    ({"passphrase": ""}, acpdb.InvalidError, "8 bytes at least"),
    ({"passphrase": 12345678}, TypeError, "str"),
    ({"passphrase": b"correct horse"}, TypeError, "str"),
    ({"passphrase": WORDS, "key_file": "my.key"}, acpdb.InvalidError, "give one of them"),
    ({"key_file": 7}, TypeError, "int"),
]


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_a_key_that_is_none_makes_no_store(tmp_path: Path, number: int) -> None:
    key, kind, says = REFUSED[number]
    with pytest.raises(kind, match=says):
        cast(Any, acpdb).open(tmp_path / "store", **key)
    assert list(tmp_path.iterdir()) == []


def test_a_plain_store_is_not_taken_for_an_encrypted_one(tmp_path: Path) -> None:
    write(tmp_path / "store")
    for key in keys(tmp_path):
        with pytest.raises(acpdb.Error) as caught:
            acpdb.open(tmp_path / "store", **key)
        assert caught.value.code in ("locked", "invalid", "rejected"), f"{caught.value.code}: {caught.value}"
    assert [file.name for file in tmp_path.iterdir()] == ["store"]


def test_sessions_have_the_subject_that_the_store_was_opened_with(tmp_path: Path) -> None:
    """Hosts that serve one person could not say so once: `Builder::subject` was in Rust alone."""
    path = tmp_path / "store"
    with acpdb.open(path, passphrase=WORDS, subject="Ada L") as store:
        for session in (store.session("s1"), store.session("s2", subject="Bob"), store.session("child", parent="s2")):
            session.append(Entry.message("user", SAID))
    for file in path.rglob("*"):
        assert file.is_dir() or b"Ada L" not in file.read_bytes(), file
    with acpdb.open(path, passphrase=WORDS) as store:
        store.session("s3").append(Entry.message("user", SAID))
        for key, subject, refused in [
            ("s1", "Ada L", None),
            ("s1", "Bob", "about another subject"),
            ("s2", "Bob", None),
            ("s2", "Ada L", "about another subject"),
            ("child", "Bob", None),
            ("s3", "Ada L", "begun without a subject"),
        ]:
            entry = Entry.message("user", "more")
            if refused is None:
                store.session(key, subject=subject).append(entry)
                continue
            head = store.head()
            with pytest.raises(acpdb.InvalidError, match=refused):
                store.session(key, subject=subject).append(entry)
            assert store.head() == head


NOT_ABOUT: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"subject": "Ada"}, acpdb.InvalidError, "a subject needs an encrypted one; give a key file or a passphrase"),
    ({"subject": "", "key_file": "my.key"}, acpdb.InvalidError, "is no name of a subject"),
    ({"subject": " Ada", "key_file": "my.key"}, acpdb.InvalidError, "blanks around it"),
    ({"subject": "A" * 257, "key_file": "my.key"}, acpdb.TooLargeError, "257"),
    ({"subject": 7, "key_file": "my.key"}, TypeError, "int"),
    ({"subject": "half \ud800", "key_file": "my.key"}, UnicodeEncodeError, "surrogates"),
]


@pytest.mark.parametrize("number", range(len(NOT_ABOUT)))
def test_a_subject_that_is_none_makes_neither_store_nor_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    given, kind, says = NOT_ABOUT[number]
    monkeypatch.chdir(tmp_path)
    with pytest.raises(kind, match=says):
        cast(Any, acpdb).open("store", **given)
    assert list(tmp_path.iterdir()) == []


def test_a_plain_store_is_about_nobody(tmp_path: Path) -> None:
    write(tmp_path / "store")
    with pytest.raises(acpdb.InvalidError, match="is not encrypted"):
        acpdb.open(tmp_path / "store", subject="Ada")
    with acpdb.open(tmp_path / "store") as store:
        with pytest.raises(acpdb.InvalidError, match="is no name of a subject"):
            store.session("s2", subject="")
        head = store.head()
        with pytest.raises(acpdb.InvalidError, match="is not encrypted"):
            store.session("s2", subject="Ada").append(Entry.message("user", SAID))
        assert store.head() == head
