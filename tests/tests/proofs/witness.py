"""A witness as C2SP tlog-witness has it, for tests: python3 witness.py CHECKER MODE NAME SEED LOGKEY SIZE ROOT

Written from tlog-witness, tlog-cosignature and signed-note alone. CHECKER is docs/check_proof.py: its curve and its hashes are used. MODE
is `honest`, or a fault. Of the log whose key is LOGKEY it has seen a tree of SIZE leaves with ROOT. It prints its key and its port.
"""
import base64, hashlib, importlib.util, os, sys, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CHECKER, MODE, NAME, SEED, LOG, SIZE, ROOT = sys.argv[1:]
spec = importlib.util.spec_from_file_location("check_proof", CHECKER)
proof = importlib.util.module_from_spec(spec)
spec.loader.exec_module(proof)


def encoded(point):
    inverse = pow(point[2], proof.P - 2, proof.P)
    x, y = point[0] * inverse % proof.P, point[1] * inverse % proof.P
    return (y | (x & 1) << 255).to_bytes(32, "little")


def signed(seed, message):
    digest = hashlib.sha512(seed).digest()
    secret = int.from_bytes(digest[:32], "little") & ((1 << 254) - 8) | (1 << 254)
    public = encoded(proof.times(secret, proof.BASE))
    number = lambda *parts: int.from_bytes(hashlib.sha512(b"".join(parts)).digest(), "little") % proof.L
    r = number(digest[32:], message)
    commitment = encoded(proof.times(r, proof.BASE))
    s = (r + number(commitment, public, message) * secret) % proof.L
    return public, commitment + s.to_bytes(32, "little")


class Refused(Exception):
    """A status, and perhaps a size."""


class Witness:
    def __init__(self, seed):
        self.seed, self.lock = seed, threading.Lock()
        self.size, self.root = int(SIZE), base64.b64decode(ROOT)
        self.public = signed(seed, b"")[0]
        self.id = hashlib.sha256(NAME.encode() + b"\n\x04" + self.public).digest()[:4]

    def key(self):
        return f"{NAME}+{self.id.hex()}+{base64.b64encode(bytes([4]) + self.public).decode()}"

    def add_checkpoint(self, body):
        head, _, note = body.partition("\n\n")
        lines = head.split("\n")
        if not lines[0].startswith("old ") or len(lines) > 64 or "\n\n" not in note:
            raise Refused(400)
        old, hashes = proof.number(lines[0][4:]), [proof.unbase64(line) for line in lines[1:]]
        text, signatures = note[: note.rindex("\n\n") + 1], note[note.rindex("\n\n") + 2 :].splitlines()
        origin, size, root = text.split("\n")[:3]
        size, root = proof.number(size), proof.unbase64(root)
        name, key_id, public = LOG.split("+", 2)
        if origin != name:
            raise Refused(404)
        own = [base64.b64decode(line.split(" ")[2]) for line in signatures if line.split(" ")[1] == name]
        own = [line[4:] for line in own if line[:4].hex() == key_id]
        if not any(proof.signature_holds(base64.b64decode(public)[1:], text.encode(), line) for line in own):
            raise Refused(403)
        if old > size:
            raise Refused(400)
        with self.lock:
            if old != self.size:
                raise Refused(409, self.size)
            if old == size and root != self.root:
                raise Refused(409)
            if old == 0 and hashes:
                raise Refused(422)
            if 0 < old:
                try:
                    roots = proof.roots_of(old, size, hashes, self.root)
                except ValueError:
                    raise Refused(422)
                if roots != (self.root, root):
                    raise Refused(422)
            self.size, self.root = size, root
        now = int(time.time())
        message = f"cosignature/v1\ntime {now}\n{text}".encode()
        seed = bytes(32) if MODE == "forged" else self.seed
        identity = b"none" if MODE == "others" else self.id
        signature = signed(seed, message + (b"\n" if MODE == "another-text" else b""))[1]
        line = base64.b64encode(identity + now.to_bytes(8, "big") + signature).decode()
        return f"\u2014 {NAME} {line}\n"


witness = Witness(bytes.fromhex(SEED))


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        if MODE == "slow":
            time.sleep(60)
        if MODE.startswith("until:"):
            while not os.path.exists(MODE[6:]):
                time.sleep(0.02)
        try:
            if self.path != "/add-checkpoint":
                raise Refused(405)
            fixed = {"garbage": "fine\n", "empty": "", "endless": "x" * (1 << 20), "cut": "\u2014 " + NAME + " AAAA\n"}
            if MODE in fixed:
                return self.answer(200, fixed[MODE])
            if MODE == "moving":
                witness.size += 1
                raise Refused(409, witness.size)
            if MODE == "no-size":
                raise Refused(409)
            if MODE == "elsewhere":
                return self.answer(302, "", [("location", "http://127.0.0.1:1/")])
            if MODE == "broken":
                raise Refused(500)
            self.answer(200, witness.add_checkpoint(body))
        except Refused as refused:
            status, *size = refused.args
            kind = [("content-type", "text/x.tlog.size")] if size else []
            self.answer(status, f"{size[0]}\n" if size else "no\n", kind)
        except (ValueError, IndexError):
            self.answer(400, "no\n")

    def answer(self, status, text, headers=()):
        body = text.encode()
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
print(witness.key(), server.server_port, flush=True)
server.serve_forever()
