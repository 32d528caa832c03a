"""What changed between values: copies from values that are known, and bytes that are new.

A list that grew by an element is its head, a copy of all that stood before, and the new element. Nothing is known of the form of the
bytes: the copy is found by comparing.
"""

from __future__ import annotations

from collections.abc import Sequence

#: Takes so many of the new bytes; or copies from a source: its number, from where, how many.
Step = int | list[int]

#: Shorter copies cost more than they save.
COPY_BYTES_MIN = 24
#: How often a beginning of a copy is looked for in vain, until the rest is taken for new.
MISSES_MAX = 64


def changes(new: bytes, sources: Sequence[bytes]) -> tuple[list[Step], bytes]:
    """Steps that make `new` from `sources`, the likeliest first; and the bytes that are new."""
    steps: list[Step] = []
    fresh = bytearray()
    end = len(new)
    tail = _same_end(sources[0], new) if sources else 0
    tail = tail if tail >= COPY_BYTES_MIN else 0
    end -= tail
    taken = at = 0
    hint: tuple[int, int] | None = (0, 0)
    stride, misses = 1, 0
    while at + COPY_BYTES_MIN <= end and misses < MISSES_MAX and sources:
        found = _copy(new, at, end, sources, hint)
        if found is None:
            misses, hint = misses + 1, None
            at, stride = at + stride, min(2 * stride, COPY_BYTES_MIN)
            continue
        source, place, length = found
        # The search went on in strides, so that the copy may begin earlier.
        while at > taken and place > 0 and new[at - 1] == sources[source][place - 1]:
            at, place, length = at - 1, place - 1, length + 1
        if at > taken:
            steps.append(at - taken)
            fresh += new[taken:at]
        steps.append([source, place, length])
        taken = at = at + length
        hint, stride = (source, place + length), 1
    if end > taken:
        steps.append(end - taken)
        fresh += new[taken:end]
    if tail:
        steps.append([0, len(sources[0]) - tail, tail])
    return steps, bytes(fresh)


def _copy(
    new: bytes, at: int, end: int, sources: Sequence[bytes], hint: tuple[int, int] | None
) -> tuple[int, int, int] | None:
    if hint is not None:
        source, place = hint
        length = _same(sources[source], place, new, at, end - at)
        if length >= COPY_BYTES_MIN:
            return source, place, length
    window = new[at : at + COPY_BYTES_MIN]
    for source, known in enumerate(sources):
        place = known.find(window)
        if place >= 0:
            return source, place, _same(known, place, new, at, end - at)
    return None


def _same(one: bytes, i: int, other: bytes, j: int, most: int) -> int:
    """How many bytes are the same from two places on."""
    high = min(len(one) - i, len(other) - j, most)
    if one[i : i + high] == other[j : j + high]:
        return high
    low = 0
    while low < high:
        middle = (low + high + 1) // 2
        if one[i + low : i + middle] == other[j + low : j + middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _same_end(one: bytes, other: bytes) -> int:
    """How many bytes are the same at both ends, but not all of either."""
    low, high = 0, max(0, min(len(one), len(other)) - 1)
    while low < high:
        middle = (low + high + 1) // 2
        if one[len(one) - middle : len(one) - low] == other[len(other) - middle : len(other) - low]:
            low = middle
        else:
            high = middle - 1
    return low
