"""Items and events as tables of Arrow."""

from __future__ import annotations

from datetime import datetime, timezone

import acpdb
import pyarrow as pa
import pytest
from acpdb.adapters import arrow
from acpdb.adapters.arrow import to_arrow


def test_rows_come_back_as_they_are(store: acpdb.Store) -> None:
    session = store.session("s1")
    with pytest.raises(acpdb.NotFoundError):
        to_arrow(session)
    assert to_arrow(store).num_rows == store.head() and to_arrow(store, after=store.head()).num_rows == 0
    for turn in range(3):
        session.append(
            acpdb.Entry.step(f"t{turn}"),
            acpdb.Entry.message("assistant", f"I read it for the {turn}th time, \u00e9\U0001f600"),
            acpdb.Entry.tool_started(f"c{turn}", "read", {"filePath": "a.rs"}),
            acpdb.Entry.tool_finished(f"c{turn}", "fn main() {}\n" * 40),
        )
    items = to_arrow(session)
    assert items.to_pylist() == session.history() and items.num_rows == 6
    assert to_arrow(session.view(), filter="tool:read", limit=2).to_pylist() == session.history(filter="tool:read", limit=2)
    assert items.schema.field("keys").type == pa.list_(pa.string()) and not items.schema.field("item").nullable
    for size in (1, 2, arrow.CHUNK_COUNT):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(arrow, "CHUNK_COUNT", size)
            events = to_arrow(store)
        assert [row["seq"] for row in events.to_pylist()] == [*range(1, store.head() + 1)]
    first = store.event(1)
    assert first is not None
    at = datetime.fromtimestamp(first["recorded_at"] / 1e6, timezone.utc)
    assert events.to_pylist()[0] == {**first, "recorded_at": at}
    assert to_arrow(store, after=4, limit=2).column("seq").to_pylist() == [5, 6]
    assert to_arrow(store, after=store.head() + 9).num_rows == 0
    for given in ((store, {"filter": "x"}), (session, {"after": 1})):
        with pytest.raises(acpdb.InvalidError):
            to_arrow(given[0], **given[1])
