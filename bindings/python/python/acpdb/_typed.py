"""Values that cannot cross the border: each becomes an error that says what to give."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, TypeVar, cast

from ._errors import InvalidError

C = TypeVar("C", bound=type)
F = TypeVar("F", bound=Callable[..., Any])
#: Their arguments are entries, which were checked as they were made; and they are called most.
_UNTOUCHED = ("append", "submit")


def as_object(given: object) -> object:
    """A mapping as the dict that JSON has; anything else as it is, for the engine to say what is meant."""
    if not isinstance(given, Mapping):
        return given
    mapping: Mapping[Any, Any] = given
    return dict(mapping)


def typed(kind: C) -> C:
    """The class, whose methods turn what Python itself says of numbers and texts into an `InvalidError`."""
    for name, method in list(vars(kind).items()):
        if not name.startswith("_") and name not in _UNTOUCHED and callable(method):
            setattr(kind, name, checked(method))
    return kind


def checked(method: F) -> F:
    """As `typed`, for one function."""

    @wraps(method)
    def call(*given: Any, **named: Any) -> Any:
        try:
            return method(*given, **named)
        except OverflowError as error:
            raise InvalidError(f"a number is out of range: {error}; give a whole number from 0") from None
        except UnicodeEncodeError as error:
            raise InvalidError(
                f"{error.object!r} holds half of a surrogate pair, which is no character; "
                "replace it with text.encode('utf-8', 'replace').decode()"
            ) from None

    return cast(F, call)
