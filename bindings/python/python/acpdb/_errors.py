"""What can go wrong, by what a caller can do about it.

Every error of acpdb is an `Error` with a `code`, a word that stays the same while texts may improve. A value of the wrong type is
Python's own `TypeError`.

>>> import acpdb
>>> acpdb.NotFoundError.code
'not_found'
>>> issubclass(acpdb.InvalidError, acpdb.Error) and issubclass(acpdb.InvalidError, ValueError)
True
"""

from typing import ClassVar


class Error(Exception):
    """Any error of acpdb."""

    code: ClassVar[str] = "error"


class InvalidError(Error, ValueError):
    """A value cannot be used; the text says what to give instead."""

    code = "invalid"


class ClosedError(Error):
    """The handle was closed, or used up. Open the store again."""

    code = "closed"


class BusyError(Error):
    """Another process held the write lock for longer than this handle waits. Try again."""

    code = "busy"


class HeadMovedError(Error):
    """Another writer was first, and nothing was recorded. Read again and retry."""

    code = "head_moved"


class RejectedError(Error):
    """A command was refused, and nothing was recorded; the text says what to change."""

    code = "rejected"


class NotFoundError(Error, LookupError):
    """There is no such thing."""

    code = "not_found"


class AmbiguousError(Error, LookupError):
    """Several things go by that name. Give more of it, or the seq."""

    code = "ambiguous"


class TooLargeError(Error):
    """The commit is over a limit. Split it."""

    code = "too_large"


class NoSpaceError(Error, OSError):
    """The disk is full, and nothing was recorded. Free some space and retry."""

    code = "no_space"


class ReadOnlyError(Error):
    """The store was opened for reading, or cannot be written."""

    code = "read_only"


class PoisonedError(Error):
    """An earlier write could not be made durable. Open the store again to append; reads go on."""

    code = "poisoned"


class ReplacedError(Error):
    """A file of the store was replaced while it was open. Open it again."""

    code = "replaced"


class ForkedError(Error):
    """The handle was made by the parent of this process. Open the store again in this one."""

    code = "forked"


class LockedError(Error):
    """A key is needed and cannot be had: none was given, it is another one, or its file is lost."""

    code = "locked"


class FencedError(Error):
    """Another worker took the store over. What was not acknowledged may be kept or not. Open the store again to take it back."""

    code = "fenced"


class UnshippedError(Error):
    """Recorded here, and not known to be at the remote. The next commit that is acknowledged brings it there, too."""

    code = "unshipped"


class UntrustedFileSystemError(Error):
    """The folder is on a file system whose locks and syncs cannot be relied on. Use a local disk."""

    code = "untrusted_file_system"


class NotAStoreError(Error):
    """There is no store in this folder."""

    code = "not_a_store"


class NewerFormatError(Error):
    """The store was written by a newer acpdb. Update this one."""

    code = "newer_format"


class UpgradedError(Error):
    """A newer acpdb upgraded the store while this handle was open. Open it again."""

    code = "upgraded"


class CorruptError(Error):
    """Recorded bytes are damaged; the rest stays readable. `Store.verify` says what is affected."""

    code = "corrupt"


class ErasedError(Error):
    """The bytes were erased; their digest and the record of the erasure stay."""

    code = "erased"


class StorageError(Error, OSError):
    """The file system refused."""

    code = "storage"
