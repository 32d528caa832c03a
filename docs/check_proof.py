#!/usr/bin/env python3
"""Checks what acpdb checkpoint prove and acpdb checkpoint export write. Needs Python's standard library, no acpdb and no store.

    python3 check_proof.py FILE KEY        KEY: as acpdb key show prints it, or a file with it

Exit code 0: it proves what is printed. 3: it proves nothing. What is checked, and what it means, stands in PROOFS.md.
"""
import base64, hashlib, json, os, struct, sys

def need(condition, why):
    if not condition:
        raise ValueError(why)
def unbase64(text):
    data = base64.b64decode(text, validate=True)
    need(base64.b64encode(data).decode() == text, "base64 in another form than the one")
    return data
def number(text):
    need(text.isascii() and text.isdigit() and len(text) < 21 and str(int(text)) == text and int(text) < 2**64, "no number")
    return int(text)

# Ed25519, RFC 8032
P, L = 2**255 - 19, 2**252 + 27742317777372353535851937790883648493
D, ROOT = -121665 * pow(121666, P - 2, P) % P, pow(2, (P - 1) // 4, P)
def add(p, q):
    a, b = (p[1] - p[0]) * (q[1] - q[0]) % P, (p[1] + p[0]) * (q[1] + q[0]) % P
    c, d = 2 * p[3] * q[3] * D % P, 2 * p[2] * q[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return (e * f % P, g * h % P, f * g % P, e * h % P)
def times(scalar, p):
    half = times(scalar >> 1, add(p, p)) if scalar else (0, 1, 1, 0)
    return add(half, p) if scalar & 1 else half
same = lambda p, q: (p[0] * q[2] - q[0] * p[2]) % P == (p[1] * q[2] - q[1] * p[2]) % P == 0
def point(data):
    y = int.from_bytes(data, "little")
    sign, y = y >> 255, y & (2**255 - 1)
    need(y < P, "no point of the curve")
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * ROOT % P
    need((x * x - square) % P == 0 and not (x == 0 and sign), "no point of the curve")
    x = P - x if x & 1 != sign else x
    return (x, y, 1, x * y % P)
BASE = point(bytes.fromhex("58" + "66" * 31))
def signature_holds(public, message, signature):
    need(len(signature) == 64, "the signature is cut")
    key, r, s = point(public), point(signature[:32]), int.from_bytes(signature[32:], "little")
    small = any(same(times(8, p), (0, 1, 1, 0)) for p in (key, r))
    k = int.from_bytes(hashlib.sha512(signature[:32] + public + message).digest(), "little") % L
    return s < L and not small and same(times(s, BASE), add(r, times(k, key)))

# BLAKE3 with a key, for the digests of texts
IV = (0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19)
MIX = ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15), (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14))
ORDER = (2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8)
def compress(chain, block, counter, length, flags):
    words = struct.unpack("<16I", block)
    v = list(chain) + list(IV[:4]) + [counter & 0xFFFFFFFF, counter >> 32, length, flags]
    for _ in range(7):
        for i, (a, b, c, d) in enumerate(MIX):
            for word, x, y in ((words[2 * i], 16, 12), (words[2 * i + 1], 8, 7)):
                v[a] = (v[a] + v[b] + word) & 0xFFFFFFFF
                t = v[d] ^ v[a]
                v[d] = (t >> x | t << 32 - x) & 0xFFFFFFFF
                v[c] = (v[c] + v[d]) & 0xFFFFFFFF
                t = v[b] ^ v[c]
                v[b] = (t >> y | t << 32 - y) & 0xFFFFFFFF
        words = [words[i] for i in ORDER]
    return [v[i] ^ v[i + 8] for i in range(8)]
def blake3_node(data, counter, root, key):
    if len(data) <= 1024:
        chain, blocks = key, [data[i : i + 64] for i in range(0, len(data), 64)] or [b""]
        for i, block in enumerate(blocks):
            last = i == len(blocks) - 1
            flags = 16 | (i == 0) | last * 2 | (last and root) * 8
            chain = compress(chain, block.ljust(64, b"\0"), counter, len(block), flags)
        return chain
    left = 1024 << ((len(data) - 1) // 1024).bit_length() - 1
    children = blake3_node(data[:left], counter, False, key) + blake3_node(data[left:], counter + left // 1024, False, key)
    return compress(key, struct.pack("<16I", *children), 0, 64, 16 | 4 | root * 8)
blake3_keyed = lambda key, data: struct.pack("<8I", *blake3_node(data, 0, True, struct.unpack("<8I", key)))

# Trees, RFC 6962
sha = lambda *parts: hashlib.sha256(b"".join(parts)).digest()
split = lambda size: 1 << (size - 1).bit_length() - 1
def root_of(index, size, node, proof):
    """The root that a proof of inclusion leads to, from the last hash down (section 2.1.1)."""
    need((size == 1) == (not proof), "the proof has hashes too many or too few")
    if size > 1 and index < split(size):
        return sha(b"\1", root_of(index, split(size), node, proof[:-1]), proof[-1])
    return node if size == 1 else sha(b"\1", proof[-1], root_of(index - split(size), size - split(size), node, proof[:-1]))
def roots_of(old, size, proof, known):
    """The old and the new root that a proof of consistency leads to (section 2.1.2)."""
    if old == size:
        need(len(proof) == (known is None), "the proof has hashes too many or too few")
        return (known, known) if known else (proof[0], proof[0])
    need(proof, "the proof has hashes too few")
    if old <= (middle := split(size)):
        first, second = roots_of(old, middle, proof[:-1], known)
        return first, sha(b"\1", second, proof[-1])
    return tuple(sha(b"\1", proof[-1], root) for root in roots_of(old - middle, size - middle, proof[:-1], None))

# Payloads, CBOR in one form (FORMAT, section 3.6): each kind with its fields that hold names
KINDS = """1 session_opened 5 host 6 name 7 project 8 parent 9 cwd 11 host_version;2 session_changed 5 cwd 6 project 7 host_version 8 call
;3 session_closed;4 turn_started 5 key;5 prompt_set 6 model;6 context_replaced;7 host_cleared 5 calls;8 rewound;9 forked
;10 host_recorded 4 record 5 about;16 message_recorded 4 key 6 parts 7 parent;17 message_continued 4 key 5 parts
;18 message_finished 4 key 5 report;19 message_abandoned 4 key;20 item_revised 6 parts
;32 tool_call_started 4 call 5 message 6 tool 13 keys 16 todos;33 tool_call_finished 4 call 6 output 8 todos
;34 file_changed 4 key;48 todos_replaced 4 list;49 todo_changed 4 change;50 task_changed 4 tasks 5 message
;51 task_evicted 4 task 7 message;64 memory_recorded 4 id 18 replaces 19 superseded_by;65 memory_superseded 4 old 5 new
;66 memory_reinforced 4 id;67 memory_retracted 4 id;80 discarded;81 distilled;82 restored;83 pinned;84 unpinned;85 injected
;86 context_rebased;87 context_served 4 step 9 format;96 policy_set 4 policy;97 project_renamed 4 old 5 new;112 erased 5 by;113 damage_noted"""
KINDS = {int(words[0]): (words[1], dict(zip(map(int, words[2::2]), words[3::2]))) for words in map(str.split, KINDS.split(";"))}
def item(data, at, depth=0):
    """A value of CBOR in the form that FORMAT has for it, and where it ends."""
    need(depth < 9 and at < len(data), "it is cut, or too deep")
    major, info = data[at] >> 5, data[at] & 31
    if info >= 24:
        need(info < 28 and major < 6 and at + (size := 1 << info - 24) < len(data), "it is no payload")
        value, at = int.from_bytes(data[at + 1 : at + 1 + size], "big"), at + 1 + size
        need(value >= (24 if size == 1 else 1 << size * 4), "an integer is longer than it need be")
    else:
        value, at = info, at + 1
    if major in (2, 3):
        need(value <= len(data) - at, "it is cut")
        return (data[at : at + value].decode() if major == 3 else bytes(data[at : at + value])), at + value
    if major in (4, 5):
        need(value <= len(data) - at, "it is cut")
        found, last = [], -1
        for _ in range(value):
            if major == 5:
                key, at = item(data, at, depth + 1)
                need(type(key) is int and key > last, "keys do not rise")
                last = key
            child, at = item(data, at, depth + 1)
            found.append((last, child))
        return (dict(found) if major == 5 else [child for _, child in found]), at
    need(major < 2 or major == 7 and value in (20, 21), "it is no payload")
    return (value, -1 - value)[major] if major < 2 else value == 21, at
def names(value):
    """All texts in a value."""
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return [value] if isinstance(value, str) else [name for child in inside for name in names(child)]
def in_words(kind, payload):
    label, fields = KINDS.get(kind, ("a kind that this script does not know", {}))
    try:
        value, end = item(payload, 0)
        need(isinstance(value, dict) and end == len(payload), "it is no map")
    except ValueError as error:
        return f"{label}, malformed: {error}"
    told = [(fields[key], names(value[key])) for key in fields if key in value]
    return ", ".join([label] + [f"{field} {' '.join(map(json.dumps, texts))}" for field, texts in told if texts])

# Notes, events, files
def loaded(text, schema, fields):
    proof = json.loads(text)
    need(set(proof) == fields and proof["schema"] == schema, "another version")
    need(json.dumps(proof, separators=(",", ":"), ensure_ascii=False) + "\n" == text, "the proof is cut, or padded")
    return proof
def checkpoint(note, key):
    """Store, size, root and time of a note that the key signed."""
    name, key_id, public = key.strip().split("+", 2)
    public = unbase64(public)
    need(len(public) == 33 and public[0] == 1, "the key is not one for Ed25519")
    need(sha(name.encode(), b"\n", public)[:4].hex() == key_id, "the key is damaged")
    at = note.rfind("\n\n")
    need(0 < at and note.endswith("\n") and len(note) < 2**20, "the signed note is cut")
    text, lines = note[: at + 1], note[at + 2 : -1].split("\n")
    need(len(lines) <= 100 and all(line.startswith("\u2014 ") and line.count(" ") == 2 for line in lines), "no signatures")
    signed = [(line.split(" ")[1], unbase64(line.split(" ")[2])) for line in lines]
    need(len({(signer, data[:4]) for signer, data in signed}) == len(signed), "two signatures of one key")
    own = [data[4:] for signer, data in signed if signer == name and data[:4].hex() == key_id]
    need(own, "it is not signed with that key, or of another store")
    need(signature_holds(public[1:], text.encode(), own[0]), "the signature is wrong")
    origin, size, root, time = (text.splitlines() + [""] * 4)[:4]
    root = unbase64(root)
    need(origin == name and origin.startswith("acpdb/") and len(root) == 32 and time.startswith("time "), "no checkpoint of a store")
    need(text == f"{origin}\n{number(size)}\n{base64.b64encode(root).decode()}\ntime {number(time[5:])}\n", "no checkpoint")
    return bytes.fromhex(origin[6:]), int(size), root, int(time[5:])
def opened(opening, of, said):
    """The seq and the leaf's hash of an event that is shown; adds to what is said of it."""
    need(set(opening) == {"schema", "salt", "event", "bodies"} and opening["schema"] == "acpdb.opening/1", "another version")
    salt, event = unbase64(opening["salt"]), unbase64(opening["event"])
    need(len(salt) == 32 and len(event) >= 100 and event[:16] == b"acpdb event v2\0\0", "no event")
    store, seq, recorded = struct.unpack_from("<16sQq", event, 16)
    kind, ordinal, payload = struct.unpack_from("<HHI", event, 64)
    rows = struct.unpack_from("<I", event, 96)[0]
    need(len(event) == 100 + 42 * rows + (payload & 0xFFFFFF) and ordinal == 0 and store == of, "the event is of another store")
    before = said.append(f"event {seq} of kind {kind} was recorded at {recorded / 1e6:.6f} in store {store.hex()}") or -1
    said.append(f"event {seq} is {in_words(kind, event[100 + 42 * rows :])}")
    for shown in opening["bodies"]:
        row, body_salt, body = shown["row"], unbase64(shown["salt"]), unbase64(shown["bytes"])
        need(set(shown) == {"row", "salt", "bytes"} and before < row < rows and len(body_salt) == 16, "no text of the event")
        digest, stored, length, form = struct.unpack_from("<32sII2s", event, 100 + 42 * row)
        found = blake3_keyed(body_salt + b"acpdb body v2\0\0\0", body)
        need(found == digest and length == stored == len(body) and form == bytes(2), "a text is another one")
        before = said.append(f"text {row} " + json.dumps(body.decode("utf-8", "replace"))) or row
    return seq, sha(b"\0", sha(b"acpdb leaf v1\0\0\0", salt, event))
def check_event(text, key):
    head, _, note = text.partition("\n\n")
    lines, said = head.split("\n"), []
    need(len(lines) >= 3 and lines[1].startswith("extra ") and lines[2].startswith("index "), "the proof is cut")
    store, size, root, _ = checkpoint(note, key)
    index, proof = number(lines[2][6:]), [unbase64(line) for line in lines[3:]]
    seq, leaf = opened(json.loads(unbase64(lines[1][6:])), store, said)
    need(seq == index + 1 and index < size and all(len(node) == 32 for node in proof), "the event is not in the tree")
    need(root_of(index, size, leaf, proof) == root, "the event is not in the tree that was signed")
    return said

def covered(leaves, low, high, hashes):
    """The root over leaves low to high: of those that are shown, and the next hash for each subtree without one."""
    if not leaves or high - low == 1:
        return leaves[0][1] if leaves else next(hashes)
    middle = low + split(high - low)
    left = covered([leaf for leaf in leaves if leaf[0] <= middle], low, middle, hashes)
    return sha(b"\1", left, covered([leaf for leaf in leaves if leaf[0] > middle], middle, high, hashes))

def check_events(text, key):
    proof, said = loaded(text, "acpdb.events/1", {"schema", "note", "events", "hashes"}), []
    store, size, root, _ = checkpoint(proof["note"], key)
    leaves = [opened(opening, store, said) for opening in proof["events"]]
    seqs, hashes = [0] + [seq for seq, _ in leaves], iter([unbase64(node) for node in proof["hashes"]])
    need(leaves and all(a < b for a, b in zip(seqs, seqs[1:])) and seqs[-1] <= size, "the events are not in the tree")
    need(covered(leaves, 0, size, hashes) == root and next(hashes, None) is None, "the events are not in the tree that was signed")
    return said

def check_growth(text, key):
    proof = loaded(text, "acpdb.consistency/1", {"schema", "old", "new", "hashes"})
    (of, old, old_root, old_time), (store, new, new_root, new_time) = checkpoint(proof["old"], key), checkpoint(proof["new"], key)
    need(of == store and 0 < old <= new and (old == new or old_time <= new_time), "the checkpoints do not follow each other")
    hashes = [unbase64(node) for node in proof["hashes"]]
    need(roots_of(old, new, hashes, old_root) == (old_root, new_root), "one history is not the beginning of the other")
    return [f"events 1 to {old} are the beginning of events 1 to {new} of store {store.hex()}"]

def main(path, key):
    key = open(key).read() if os.path.isfile(key) else key
    try:
        text = open(path, newline="").read()
        if text.startswith("c2sp.org/tlog-proof@v1\n"):
            said = check_event(text, key)
        elif text.startswith('{"schema":"acpdb.events/1"'):
            said = check_events(text, key)
        elif text.startswith("{"):
            said = check_growth(text, key)
        else:
            store, size, _, time = checkpoint(text, key)
            said = [f"store {store.hex()} had {size} events, signed at {time}"]
    except (ValueError, KeyError, TypeError, RecursionError, StopIteration) as error:
        sys.exit(print(f"{path} proves nothing: {error}", file=sys.stderr) or 3)
    print("\n".join(said))

if __name__ == "__main__":
    main(*(sys.argv[1:] if len(sys.argv) == 3 else sys.exit(__doc__)))
