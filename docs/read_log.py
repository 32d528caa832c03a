#!/usr/bin/env python3
"""Lists the sessions and texts of a log, by docs/FORMAT.md alone: a second reader, which shares no code with acpdb.

    zstd -dcf STORE/log/*.seg | python3 read_log.py             a line of JSON for each event, with its texts
    zstd -dcf STORE/log/*.seg | python3 read_log.py --sessions  a line for each session

Needs Python 3.9 and nothing else. It checks the checksums of segments and frames and the order of seqs, and no digest: that is what
`acpdb verify` and check_proof.py are for. Ends with 3 if it met damage, which it names, and goes on behind it.
"""
import json
import re
import struct
import sys

SEGMENT, FRAME, HEADER, SEGMENT_HEADER = b"acpdbseg", b"ACPF", 160, 4096

# Kind, name, and the fields that this script shows by their names: those whose values are names or numbers.
KINDS = {
    1: ("session_opened", {5: "host", 6: "name", 7: "project", 9: "cwd"}),
    2: ("session_changed", {5: "cwd", 6: "project"}),
    3: ("session_closed", {}),
    4: ("turn_started", {5: "key"}),
    5: ("prompt_set", {6: "model"}),
    6: ("context_replaced", {6: "tokens_before"}),
    7: ("host_cleared", {5: "calls"}),
    8: ("rewound", {4: "to"}),
    9: ("forked", {5: "at"}),
    10: ("host_recorded", {4: "record", 5: "about"}),
    16: ("message_recorded", {4: "key"}),
    17: ("message_continued", {4: "key"}),
    18: ("message_finished", {4: "key"}),
    19: ("message_abandoned", {4: "key"}),
    20: ("item_revised", {4: "item"}),
    32: ("tool_call_started", {4: "call", 6: "tool"}),
    33: ("tool_call_finished", {4: "call"}),
    34: ("file_changed", {}),
    48: ("todos_replaced", {}),
    49: ("todo_changed", {}),
    50: ("task_changed", {}),
    51: ("task_evicted", {4: "task"}),
    64: ("memory_recorded", {4: "id"}),
    65: ("memory_superseded", {4: "old", 5: "new"}),
    66: ("memory_reinforced", {4: "id"}),
    67: ("memory_retracted", {4: "id"}),
    80: ("discarded", {}),
    81: ("distilled", {}),
    82: ("restored", {}),
    83: ("pinned", {4: "items"}),
    84: ("unpinned", {4: "items"}),
    85: ("injected", {}),
    86: ("context_rebased", {4: "epoch"}),
    87: ("context_served", {4: "step", 9: "format", 8: "tokens"}),
    96: ("policy_set", {4: "policy"}),
    97: ("project_renamed", {4: "old", 5: "new"}),
    112: ("erased", {4: "bodies", 5: "by"}),
    113: ("damage_noted", {4: "segment", 5: "offset", 6: "first", 7: "last"}),
}
# Where the texts of section 3.6 stand: `6*1` is field 1 of each member of the list in field 6. Free texts of persons, such as titles, are
# left out here.
TEXTS = {
    5: "4 5 7", 7: "6", 10: "6", 16: "6*1", 17: "5*1", 20: "6*1", 32: "7 19", 33: "6*1 7", 48: "4.0", 49: "4.2", 50: "4*1 4*3 4*4",
    51: "5", 64: "9 11 12* 21", 65: "6", 67: "5", 80: "4", 81: "4 5*2", 82: "4", 85: "5",
}
ROLES = ("system", "user", "assistant", "tool")
ACTORS = ("user", "assistant", "tool", "host", "policy")

damage = []


def crc_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


CRC = crc_table()


def crc32c(*pieces):
    value = 0xFFFFFFFF
    for piece in pieces:
        for byte in piece:
            value = value >> 8 ^ CRC[(value ^ byte) & 255]
    return value ^ 0xFFFFFFFF


def number(data, at, size):
    return int.from_bytes(data[at : at + size], "little")


class Malformed(Exception):
    pass


def need(condition, why):
    if not condition:
        raise Malformed(why)


def cbor(data, at=0, depth=0):
    """A value of CBOR in the one form of section 3.6, and where it ends."""
    need(depth < 9 and at < len(data), "it is cut, or too deep")
    major, value = data[at] >> 5, data[at] & 31
    at += 1
    if value >= 24:
        need(value < 28 and major < 6, "it has a form that no payload has")
        size = 1 << value - 24
        value, at = int.from_bytes(data[at : at + size], "big"), at + size
        need(at <= len(data) and value >= (24 if size == 1 else 1 << size * 4), "an integer is cut, or longer than it need be")
    if major == 0:
        return value, at
    if major == 1:
        return -1 - value, at
    if major in (2, 3):
        need(value <= len(data) - at, "it is cut")
        piece = bytes(data[at : at + value])
        return (piece if major == 2 else piece.decode()), at + value
    if major == 4:
        need(value <= len(data) - at, "it is cut")
        found = []
        for _ in range(value):
            child, at = cbor(data, at, depth + 1)
            found.append(child)
        return found, at
    if major == 5:
        need(value <= len(data) - at, "it is cut")
        found, last = {}, -1
        for _ in range(value):
            key, at = cbor(data, at, depth + 1)
            need(isinstance(key, int) and key > last, "its keys do not rise")
            found[key], at = cbor(data, at, depth + 1)
            last = key
        return found, at
    need(major == 7 and value in (20, 21), "it has a form that no payload has")
    return value == 21, at


class Rows:
    """The bodies of one event."""

    def __init__(self, frame, rows, bodies):
        self.frame, self.rows, self.bodies = frame, rows, bodies

    def text(self, body):
        """The text of a `Body`: [first row, number of rows, ..]."""
        whole = b""
        for offset, stored in self.rows[body[0] : body[0] + body[1]]:
            at = self.bodies + offset
            if not any(self.frame[at : at + 16]):
                return "[erased]"
            whole += self.frame[at + 16 : at + 16 + stored]
        return whole.decode("utf-8", "replace")


def found(value, path):
    """The values at a path of `TEXTS`."""
    key, separator, rest = (*re.split(r"([.*])", path, maxsplit=1), "", "")[:3]
    inner = value.get(int(key))
    if inner is None:
        return []
    inside = inner if separator == "*" else [inner]
    return [leaf for child in inside for leaf in (found(child, rest) if rest else [child])]


def event(kind, payload, rows):
    """The label, the named fields and the texts of an event."""
    label, shown = KINDS.get(kind, (f"kind {kind}", {}))
    fields, end = cbor(payload)
    need(isinstance(fields, dict) and end == len(payload), "it is no map")
    told = {"actor": ACTORS[fields.get(0, 0)]}
    told.update((name, fields[key]) for key, name in shown.items() if key in fields)
    if kind == 16:
        told["role"] = ROLES[fields.get(5, 0)]
    bodies = [body for path in TEXTS.get(kind, "").split() for body in found(fields, path)]
    return label, told, [rows.text(body) for body in bodies]


def frames(data):
    """The frames of a log that lies as a whole in memory: (header, frame, offset)."""
    at, store, seq = 0, None, None
    while at + HEADER <= len(data):
        if data[at : at + 8] == SEGMENT:
            # Its header, which names the store, and then its frames.
            need(number(data, at + 8, 4) == 3, f"the log has format version {number(data, at + 8, 4)}, and this script reads 3")
            store = data[at + 16 : at + 32]
            at += SEGMENT_HEADER
            continue
        header = data[at : at + HEADER]
        if header[:4] != FRAME or store is None or crc32c(store, header[:156]) != number(header, 156, 4):
            # Zeros behind the last frame of a segment; or damage, behind which the next sound header goes on.
            if any(data[at : at + 16]) and not (damage and damage[-1][1] == at):
                damage.append((at, at + 16))
            elif damage and damage[-1][1] == at:
                damage[-1] = (damage[-1][0], at + 16)
            at += 16
            continue
        events, streams, rows, spine, bodies = struct.unpack_from("<5I", header, 8)
        content = streams * 16 + rows * 48 + spine
        length = HEADER + content + bodies
        if at + length > len(data):
            damage.append((at, len(data)))
            return
        frame = data[at : at + length]
        first = number(header, 32, 8)
        if seq is not None and first != seq:
            print(f"events {seq} to {first - 1} are missing", file=sys.stderr)
            damage.append((at, at))
        seq = first + events
        if crc32c(frame[HEADER : HEADER + content]) == number(header, 28, 4):
            yield header, frame
        else:
            damage.append((at, at + HEADER + content))
        at += (length + 15) // 16 * 16


def read(data):
    """All events: (seq, time, stream, label, fields, texts)."""
    for header, frame in frames(data):
        if header[7]:
            print("a frame is sealed: it cannot be read without the key of its store", file=sys.stderr)
            continue
        events, streams, rows, spine, _ = struct.unpack_from("<5I", header, 8)
        first, time = number(header, 32, 8), number(header, 56, 8)
        rows_at = HEADER + streams * 16
        spine_at = rows_at + rows * 48
        payload_at, bodies_at = spine_at + events * 32, spine_at + spine
        of_event = {}
        for row in range(rows):
            at = rows_at + row * 48
            of_event.setdefault(number(frame, at + 44, 2), []).append((number(frame, at + 32, 4), number(frame, at + 36, 4)))
        for ordinal in range(events):
            at = spine_at + ordinal * 32
            kind, stream, size = number(frame, at, 2), number(frame, at + 2, 2), number(frame, at + 4, 3)
            payload, payload_at = frame[payload_at : payload_at + size], payload_at + size
            stream = frame[HEADER + stream * 16 : HEADER + stream * 16 + 16].hex()
            try:
                told = event(kind, payload, Rows(frame, of_event.get(ordinal, []), bodies_at))
            except (Malformed, ValueError, IndexError, TypeError, AttributeError) as error:
                told = (f"kind {kind}, malformed", {"why": str(error)}, [])
            yield (first + ordinal, time, stream, *told)


def shown(value):
    return value.hex() if isinstance(value, bytes) else value


def main(asked):
    data = sys.stdin.buffer.read()
    sessions = {}
    for seq, time, stream, label, fields, texts in read(data):
        session = sessions.setdefault(stream, {"stream": stream, "events": 0, "texts": 0, "first": seq})
        if label == "session_opened":
            session.update({key: fields[key] for key in ("host", "name", "project") if key in fields})
        session.update(events=session["events"] + 1, texts=session["texts"] + len(texts), last=seq)
        if not asked:
            line = {"seq": seq, "time": time, "session": session.get("name", stream), "kind": label}
            print(json.dumps({**line, **fields, "texts": texts}, ensure_ascii=False, default=shown))
    if asked:
        for session in sessions.values():
            print(json.dumps(session, ensure_ascii=False))
    for begin, end in damage:
        print(f"damage in bytes {begin} to {end} of the log", file=sys.stderr)
    return 3 if damage else 0


if __name__ == "__main__":
    if sys.argv[1:] not in ([], ["--sessions"]):
        sys.exit(__doc__)
    try:
        sys.exit(main(sys.argv[1:]))
    except Malformed as error:
        sys.exit(str(error))
