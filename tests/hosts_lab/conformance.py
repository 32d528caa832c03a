#!/usr/bin/env python3
"""Plays the conformance suite of the Model Context Protocol against `acpdb mcp --http`.

    conformance.py ACPDB         # a program with the feature mcp-http

The suite is that of npm (`@modelcontextprotocol/conformance`), by its exact version, with a Node that it runs on. It asks for tools,
resources and prompts by names of its own: where acpdb has something of the kind, a server in between exchanges the names, and
nothing else. Each scenario of the suite is played, or has a reason here why it does not apply.
"""
import http.client
import http.server
import json
import os
import subprocess
import sys
import tempfile
import threading

import lab

PACKAGES = ["@modelcontextprotocol/conformance@0.1.16", "node@22.23.3"]
DIRECT = ["server-initialize", "ping", "tools-list", "resources-list", "prompts-list", "dns-rebinding-protection"]
# The suite's name -> acpdb's.
NAMES = {"test_simple_text": "todo", "test_error_handling": "explain", "test://static-text": "acpdb://session/s123",
         "test://template/123/data": "acpdb://session/s123", "test_simple_prompt": "due"}
NAMED = ["tools-call-simple-text", "tools-call-error", "resources-read-text", "resources-templates-read", "prompts-get-simple"]
NOT_OFFERED = {
    "logging": ["logging-set-level", "tools-call-with-logging"],
    "completions": ["completion-complete"],
    "subscriptions to resources": ["resources-subscribe", "resources-unsubscribe"],
    "questions to the client (sampling, elicitation)": [
        "tools-call-sampling", "tools-call-elicitation", "elicitation-sep1034-defaults", "elicitation-sep1330-enums"],
    "notices of progress, every answer is quick": ["tools-call-with-progress"],
    "pictures, sounds and embedded resources, answers are texts": [
        "tools-call-image", "tools-call-audio", "tools-call-embedded-resource", "tools-call-mixed-content", "resources-read-binary",
        "prompts-get-embedded-resource", "prompts-get-with-image"],
    "prompts with arguments": ["prompts-get-with-args"],
    "sessions and streams, each request stands for itself": ["server-sse-polling", "server-sse-multiple-streams"],
    "tool with the schema that the suite looks for": ["json-schema-2020-12"],
}


# The suite sends no header of its own, so the token stands in the address.
TOKEN = "laboratory"
PATH = "/key/%s/mcp" % TOKEN


class Renaming(http.server.BaseHTTPRequestHandler):
    """Passes requests on with other names."""

    server_port_of_acpdb = 0

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        for name, own in NAMES.items():
            body = body.replace(json.dumps(name), json.dumps(own))
        connection = http.client.HTTPConnection("127.0.0.1", self.server_port_of_acpdb)
        headers = {name: value for name, value in self.headers.items() if name.lower() not in ("host", "content-length", "connection")}
        connection.request("POST", PATH, body.encode(), headers)
        answer = connection.getresponse()
        payload = answer.read()
        self.send_response(answer.status)
        if answer.getheader("Content-Type"):
            self.send_header("Content-Type", answer.getheader("Content-Type"))
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def do_GET(self):
        self.send_error(405)

    def log_message(self, *_):
        pass


def install():
    folder = os.path.join(lab.LAB, "mcp")
    done = os.path.join(folder, "installed")
    if not os.path.exists(done) or open(done, encoding="utf-8").read() != " ".join(PACKAGES):
        os.makedirs(folder, exist_ok=True)
        subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--prefix", folder, *PACKAGES], cwd=folder, check=True,
                       capture_output=True, timeout=600)
        with open(done, "w", encoding="utf-8") as file:
            file.write(" ".join(PACKAGES))
    modules = os.path.join(folder, "node_modules")
    return [os.path.join(modules, "node/bin/node"), os.path.join(modules, "@modelcontextprotocol/conformance/dist/index.js")]


def store(program, folder):
    """A store with a session whose name the suite looks for."""
    todos = {"todos": [{"content": "Look", "status": "pending"}]}
    lines = [{"session": "s123", "message": {"role": "user", "text": "Where is 123?"}},
             {"session": "s123", "turn": True, "tool": {"call": "c1", "tool": "todowrite", "params": todos, "output": json.dumps(todos["todos"])}}]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    subprocess.run([program, "--db", folder, "append", "--stdin"], input=text, text=True, check=True, capture_output=True)


def main():
    program = os.path.abspath(sys.argv[1])
    suite = install()
    listed = subprocess.run([*suite, "list", "--server"], capture_output=True, text=True, check=True).stdout
    listed = {line.split()[1] for line in listed.splitlines() if line.strip().startswith("- ")}
    not_offered = {name for names in NOT_OFFERED.values() for name in names}
    known = {*DIRECT, *NAMED, *not_offered}
    faults = ["the suite has %s, of which nothing is known here" % name for name in sorted(listed - known)]
    faults += ["the suite has no %s" % name for name in sorted(known - listed)]
    with tempfile.TemporaryDirectory() as scratch:
        store(program, os.path.join(scratch, "store"))
        command = [program, "--db", os.path.join(scratch, "store"), "mcp", "--http", "127.0.0.1:0", "--session", "s123"]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "ACPDB_MCP_TOKEN": TOKEN})
        try:
            url = server.stdout.readline().strip()
            Renaming.server_port_of_acpdb = int(url.split(":")[2].split("/")[0])
            url = "http://127.0.0.1:%d%s" % (Renaming.server_port_of_acpdb, PATH)
            between = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Renaming)
            threading.Thread(target=between.serve_forever, daemon=True).start()
            named = "http://127.0.0.1:%d/mcp" % between.server_address[1]
            for name in sorted(listed & {*DIRECT, *NAMED}):
                done = subprocess.run([*suite, "server", "--url", url if name in DIRECT else named, "--scenario", name],
                                      capture_output=True, text=True, check=False, timeout=120, cwd=scratch)
                if done.returncode:
                    faults.append("%s: %s" % (name, (done.stdout + done.stderr)[-900:]))
                print("%s: %s" % (name, "FAILED" if done.returncode else "as it should be"), flush=True)
        finally:
            server.kill()
    for why, names in NOT_OFFERED.items():
        print("does not apply (no %s): %s" % (why, ", ".join(names)))
    sys.exit("\n".join(faults) or 0)


if __name__ == "__main__":
    main()
