"""Apache Arrow: items and events as tables, for pandas, Polars and DuckDB.

```python
table = to_arrow(session.view())
```

Columns and their types are those of the rows that `history` and `event` give.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, get_args, get_origin, get_type_hints

import pyarrow as pa  # type: ignore[import-untyped]

from .. import InvalidError, Session, Store
from .._shapes import EventRow, ItemRow
from .._view import View

#: Events that are one chunk of a table.
CHUNK_COUNT = 10_000


def to_arrow(of: View | Session | Store, *, after: int = 0, filter: str = "", limit: int | None = None) -> pa.Table:
    """The items of a view or a session, those that a filter lets pass; or the events of a store behind a seq. Times are in UTC."""
    if isinstance(of, Store):
        if filter:
            raise InvalidError("events are not filtered; filter the table, or give a session")
        events, schema = _events(of, after, limit), schema_of(EventRow)
        chunks = iter(lambda: [*islice(events, CHUNK_COUNT)], [])
        return pa.Table.from_batches((pa.RecordBatch.from_pylist(chunk, schema=schema) for chunk in chunks), schema)
    if after:
        raise InvalidError("after is of events; items are filtered by filter")
    return pa.Table.from_pylist(of.history(filter=filter, limit=limit), schema=schema_of(ItemRow))


def schema_of(row: type) -> pa.Schema:
    """The columns of rows of a type."""
    return pa.schema([_field(name, hint) for name, hint in get_type_hints(row).items()])


def _events(store: Store, after: int, limit: int | None) -> Iterator[EventRow]:
    head = store.head()
    # What comes meanwhile is not in the table.
    events = (event for commit in store.subscribe(after, timeout=0) for event in commit["events"])
    return islice(events, max(0, head - after) if limit is None else min(limit, max(0, head - after)))


def _field(name: str, hint: Any) -> pa.Field:
    kinds: dict[Any, pa.DataType] = {str: pa.string(), int: pa.int64(), bool: pa.bool_()}
    asked = get_args(hint)
    nullable = type(None) in asked
    kind = next((it for it in asked if it is not type(None)), hint) if nullable else hint
    if name == "recorded_at":
        return pa.field(name, pa.timestamp("us", tz="UTC"), nullable)
    if get_origin(kind) is list:
        return pa.field(name, pa.list_(kinds[get_args(kind)[0]]), nullable)
    return pa.field(name, kinds[kind], nullable)
