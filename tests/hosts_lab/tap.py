#!/usr/bin/env python3
"""Stands in for a host: starts the real one, and writes down each byte between it and the address that it was given.

A link to this file bears the host's name. LAB_REAL is the real program, LAB_TAP the folder for `NNNN.sent` and `NNNN.got`, the
bodies of each request and answer. Addresses on this machine in the host's variables and words lead through here.
"""
import http.client
import os
import re
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ADDRESS = re.compile(r"http://127\.0\.0\.1:(\d+)")
HOP = {"connection", "keep-alive", "transfer-encoding", "content-length"}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def body(self):
        if "chunked" not in self.headers.get("Transfer-Encoding", "").lower():
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        whole = b""
        while True:
            size = int(self.rfile.readline().split(b";")[0] or b"0", 16)
            whole += self.rfile.read(size)
            self.rfile.readline()
            if size == 0:
                return whole

    def passed(self):
        raw = self.body()
        head = {name: value for name, value in self.headers.items() if name.lower() not in HOP | {"host"}}
        asked = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=120)
        asked.request(self.command, self.path, raw or None, head)
        answer = asked.getresponse()
        got = answer.read()
        if raw:
            with self.server.lock:
                self.server.count += 1
                number = self.server.count
            for end, data in (("sent", raw), ("got", got)):
                with open(os.path.join(os.environ["LAB_TAP"], "%d-%04d.%s" % (os.getpid(), number, end)), "wb") as file:
                    file.write(data)
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in HOP:
                self.send_header(name, value)
        if self.command != "HEAD":
            self.send_header("Content-Length", str(len(got)))
        self.end_headers()
        self.wfile.write(got)

    do_GET = do_POST = do_HEAD = passed


def main():
    taps = {}

    def through(text):
        def tap(found):
            port = int(found.group(1))
            if port not in taps:
                server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
                server.daemon_threads, server.port, server.count, server.lock = True, port, 0, threading.Lock()
                threading.Thread(target=server.serve_forever, daemon=True).start()
                taps[port] = server.server_address[1]
            return "http://127.0.0.1:%d" % taps[port]
        return ADDRESS.sub(tap, text)

    environment = {name: through(value) if name.endswith(("_BASE_URL", "_API_BASE")) else value for name, value in os.environ.items()}
    words = [through(word) for word in sys.argv[1:]]
    sys.exit(subprocess.run([os.environ["LAB_REAL"], *words], env=environment, check=False).returncode)


if __name__ == "__main__":
    main()
