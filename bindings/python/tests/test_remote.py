"""Stores beyond their machine, on a disk that workers share."""

from __future__ import annotations

from pathlib import Path

import acpdb
import pytest
from acpdb import Entry


def test_a_worker_goes_on_where_another_one_was(tmp_path: Path) -> None:
    url = f"file://{tmp_path}/disk"

    def worker(name: str, **options: object) -> acpdb.Store:
        return acpdb.open_remote(url, "session-1", tmp_path / name, owner=name, any_file_system=True, **options)  # type: ignore[arg-type]

    with pytest.raises(acpdb.NotFoundError):
        worker("one", create=False)
    first = worker("one")
    first.session("s1").append(Entry.message("user", "hello"))
    second = worker("two", create=False)
    assert second.id == first.id and len(second.session("s1").history()) == 1
    with pytest.raises(acpdb.FencedError):
        first.session("s1").append(Entry.message("user", "too late"))
    second.session("s1").append(Entry.message("user", "in time"))
    assert second.verify()["verdict"] == "sound"
    # The folder of a worker may be lost: what was acknowledged is there.
    with worker("three") as third:
        texts = [item["output"]["text"] for item in third.session("s1").context()["items"] if item["output"]]
    assert texts == ["hello", "in time"]


def test_what_cannot_be_opened_there_says_so(tmp_path: Path) -> None:
    for url, says in [("ftp://host/place", "ftp"), (str(tmp_path), "URL"), ("s3://", "s3://BUCKET")]:
        with pytest.raises(acpdb.InvalidError, match=says):
            acpdb.open_remote(url, "s", tmp_path / "here", any_file_system=True)
    with pytest.raises(acpdb.InvalidError, match="not both"):
        acpdb.open_remote(f"file://{tmp_path}/disk", "s", tmp_path / "here", passphrase="0123456789", key_file="x")
    # A key means an encrypted store: a plain one is not used.
    acpdb.open_remote(f"file://{tmp_path}/disk", "s", tmp_path / "here", any_file_system=True).close()
    with pytest.raises(acpdb.LockedError, match="not encrypted"):
        acpdb.open_remote(f"file://{tmp_path}/disk", "s", tmp_path / "there", passphrase="0123456789", any_file_system=True)


def test_objects_of_a_store_that_was_made_with_a_key_are_opened_by_it_alone(tmp_path: Path) -> None:
    url = f"file://{tmp_path}/disk"

    def worker(name: str, passphrase: str | None) -> acpdb.Store:
        return acpdb.open_remote(url, "s", tmp_path / name, passphrase=passphrase, any_file_system=True)

    with worker("one", "0123456789") as first:
        first.session("s1").append(Entry.message("user", "words for few"))
    objects = [path.read_bytes() for path in (tmp_path / "disk").rglob("*") if path.is_file()]
    assert sum(bytes.startswith(b"acpdbenc") for bytes in objects) == len(objects) - 2
    with worker("two", "0123456789") as second:
        assert len(second.session("s1").history()) == 1
    for name, passphrase in [("three", "another one"), ("four", None)]:
        with pytest.raises(acpdb.LockedError):
            worker(name, passphrase)
