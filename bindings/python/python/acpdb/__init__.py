"""acpdb: the context of AI agents as an append-only log, with the reason each thing is in or out.

>>> import acpdb, tempfile
>>> with acpdb.open(tempfile.mkdtemp()) as store:
...     session = store.session("s1", project="shop")
...     receipt = session.append(acpdb.Entry.message("user", "why is the build red?"))
...     request = session.step().context("anthropic").body
"""

from importlib.metadata import PackageNotFoundError, version as _version

from ._acpdb import Entry, Part, Receipt
from ._errors import (
    AmbiguousError,
    BusyError,
    ClosedError,
    CorruptError,
    ErasedError,
    Error,
    FencedError,
    ForkedError,
    HeadMovedError,
    InvalidError,
    LockedError,
    NewerFormatError,
    NoSpaceError,
    NotAStoreError,
    NotFoundError,
    PoisonedError,
    ReadOnlyError,
    RejectedError,
    ReplacedError,
    StorageError,
    TooLargeError,
    UnshippedError,
    UntrustedFileSystemError,
    UpgradedError,
)
from ._session import Served, Session, Step, Ticket
from ._store import Store, Stores, Subscription, lint, open, open_all, open_remote, restore, stores_in, verify
from ._view import View

try:
    __version__ = _version("acpdb")
except PackageNotFoundError:
    __version__ = "unknown"

__all__ = [
    "AmbiguousError",
    "BusyError",
    "ClosedError",
    "CorruptError",
    "Entry",
    "ErasedError",
    "Error",
    "FencedError",
    "ForkedError",
    "HeadMovedError",
    "InvalidError",
    "LockedError",
    "NewerFormatError",
    "NoSpaceError",
    "NotAStoreError",
    "NotFoundError",
    "Part",
    "PoisonedError",
    "ReadOnlyError",
    "Receipt",
    "RejectedError",
    "ReplacedError",
    "Served",
    "Session",
    "Step",
    "StorageError",
    "Store",
    "Stores",
    "Subscription",
    "Ticket",
    "TooLargeError",
    "UnshippedError",
    "UntrustedFileSystemError",
    "UpgradedError",
    "View",
    "__version__",
    "lint",
    "open",
    "open_all",
    "open_remote",
    "restore",
    "stores_in",
    "verify",
]
