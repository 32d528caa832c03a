#!/usr/bin/env python3
"""Runs real agent hosts against a provider that plays a script, and keeps what they recorded and what they sent.

    lab.py install            # the pinned versions of all hosts, each into a folder of its own
    lab.py run                # every scene of every host, into the fixtures
    lab.py run codex/main     # one scene
    lab.py run --out DIR      # somewhere else, to compare

Everything is on loopback; a host needs no key. HOSTS_LAB names the folder for hosts and runs (else ~/.cache/acpdb-hosts).
Scenes are played in /tmp/acpdb-lab, so that recordings name the same paths wherever they are made.
"""
import argparse
import base64
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
import urllib.request
from contextlib import contextmanager

import fixtures
from provider import PICTURE

HERE = os.path.dirname(os.path.abspath(__file__))
LAB = os.environ.get("HOSTS_LAB") or os.path.expanduser("~/.cache/acpdb-hosts")
STAGE = os.environ.get("HOSTS_STAGE") or "/tmp/acpdb-lab"
# A host, and behind it what it needs besides: Pi what loads its extensions, and a newer Node than many machines have.
PINS = {
    "claude": "@anthropic-ai/claude-code@2.1.332",
    "codex": "@openai/codex@0.171.0",
    "opencode": "opencode-ai@1.18.33",
    "gemini": "@google/gemini-cli@0.61.0",
    "copilot": "@github/copilot@1.0.102",
    "pi": "@earendil-works/pi-coding-agent@1.6.0 jiti@2.7.0 node@22.23.3",
}
# HOSTS_OLDER=1 plays an older version of each instead.
OLDER = {
    "claude": "@anthropic-ai/claude-code@2.1.322",
    "codex": "@openai/codex@0.168.0",
    "opencode": "opencode-ai@1.18.8",
    "gemini": "@google/gemini-cli@0.59.0",
    "copilot": "@github/copilot@1.0.92",
    "pi": "@earendil-works/pi-coding-agent@1.5.2 jiti@2.7.0 node@22.23.3",
}
if os.environ.get("HOSTS_OLDER"):
    PINS = OLDER
# Hosts whose program holds all its parts. Their packages name the parts besides, also those that npm does not have.
WHOLE = {"pi"}


def install():
    for host, package in PINS.items():
        folder = os.path.join(LAB, host)
        done = os.path.join(folder, "installed")
        if os.path.exists(done) and open(done, encoding="utf-8").read() == package:
            continue
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        packages = package.split()
        if host in WHOLE:
            npm(folder, "install", *packages[1:])
            unpack(folder, packages[0])
        else:
            npm(folder, "install", *packages)
        with open(done, "w", encoding="utf-8") as file:
            file.write(package)
        print("installed", package)


def npm(folder, *words):
    command = ["npm", *words, "--no-audit", "--no-fund", "--prefix", folder]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=600)
    if result.returncode:
        sys.exit("npm %s failed: %s" % (" ".join(words), result.stderr[-600:]))
    return result.stdout


def unpack(folder, package):
    """One package without those that it names, where npm would have put it."""
    packed = os.path.join(folder, npm(folder, "pack", package).split()[-1])
    modules = os.path.join(folder, "node_modules")
    place = os.path.join(modules, package.rpartition("@")[0])
    with tarfile.open(packed) as file:
        file.extractall(place + ".new", filter="data")
    os.remove(packed)
    os.rename(os.path.join(place + ".new", "package"), place)
    os.rmdir(place + ".new")
    with open(os.path.join(place, "package.json"), encoding="utf-8") as file:
        programs = json.load(file)["bin"]
    for name, path in programs.items():
        program = os.path.join(place, path)
        os.chmod(program, 0o755)
        os.makedirs(os.path.join(modules, ".bin"), exist_ok=True)
        os.symlink(program, os.path.join(modules, ".bin", name))


class Scene:
    """One host in a home and a project of its own, with a provider beside it."""

    def __init__(self, host, name):
        self.host, self.name = host, name
        self.installed = os.path.join(LAB, host)
        self.root = os.path.join(STAGE, host + "-" + name)
        shutil.rmtree(self.root, ignore_errors=True)
        self.home, self.project, self.wire = (os.path.join(self.root, part) for part in ("home", "project", "wire"))
        for folder in (self.home, self.wire, os.path.join(self.project, "src")):
            os.makedirs(folder)
        self.put("project/src/a.py", 'def greet(name):\n    return "hello " + name\n\n\ndef main():\n    print(greet("lab"))\n')
        self.put("project/src/b.py", 'import a\n\nprint(a.greet("b"))\n')
        with open(os.path.join(self.project, "dot.png"), "wb") as file:
            file.write(base64.b64decode(PICTURE))
        git = ["git", "-c", "user.name=lab", "-c", "user.email=lab@localhost", "-c", "init.defaultBranch=main"]
        for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "Lab"]):
            subprocess.run(git + words, cwd=self.project, check=True, env=dict(os.environ, HOME=self.home))
        command = [sys.executable, os.path.join(HERE, "provider.py"), "--host", host, "--project", self.project,
                   "--plays", os.path.join(HERE, "plays.json"), "--log", self.wire]
        self.errors = open(os.path.join(self.root, "provider.err"), "wb")
        self.provider = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.errors, text=True)
        self.url = "http://127.0.0.1:" + self.provider.stdout.readline().strip()
        self.environment = {
            "HOME": self.home, "PATH": os.path.join(self.installed, "node_modules/.bin") + ":" + os.environ["PATH"],
            "XDG_CONFIG_HOME": self.home + "/.config", "XDG_DATA_HOME": self.home + "/.local/share",
            "XDG_STATE_HOME": self.home + "/.local/state", "XDG_CACHE_HOME": self.home + "/.cache",
            "NO_COLOR": "1", "CI": "1", "LANG": "C.UTF-8", "TZ": "UTC", "TERM": "dumb", "LAB_KEY": "lab",
        }
        self.said = 0

    def put(self, path, text):
        path = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def run(self, *command, lines=None, until=None):
        """Runs the host once. `lines`: (seconds to wait, text) to type meanwhile. `until`: it is killed, and all that it started,
        once the project has a file of this name."""
        self.said += 1
        outs = [open(os.path.join(self.root, "%d.%s" % (self.said, end)), "wb") for end in ("out", "err")]
        process = subprocess.Popen(command, cwd=self.project, env=self.environment, stdout=outs[0], stderr=outs[1],
                                   stdin=subprocess.PIPE if lines else subprocess.DEVNULL, start_new_session=True)
        if until:
            while process.poll() is None and not os.path.exists(os.path.join(self.project, until)):
                time.sleep(0.05)
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return 0
        for wait, line in lines or []:
            time.sleep(wait)
            process.stdin.write(line.encode() + b"\n")
            process.stdin.flush()
        if lines:
            time.sleep(6)
            process.stdin.close()
        try:
            code = process.wait(timeout=150)
        except subprocess.TimeoutExpired:
            process.kill()
            code = "no end"
        if code:
            print("  %s/%s: run %d ended with %s" % (self.host, self.name, self.said, code))
        return code

    @contextmanager
    def serving(self, *command):
        """The host as a server of its own, as long as it is asked; gives its address, which it prints."""
        process = subprocess.Popen(command, cwd=self.project, env=self.environment, stdout=subprocess.PIPE, stderr=self.errors,
                                   text=True, start_new_session=True)
        try:
            line = next(line for line in process.stdout if "http://" in line)
            yield "http://" + line.split("http://")[1].strip()
        finally:
            process.terminate()
            process.wait()

    @staticmethod
    def ask(url, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(url, data=data, headers={"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def end(self):
        self.provider.kill()
        self.provider.wait()
        self.errors.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("what", choices=["install", "run"])
    parser.add_argument("scenes", nargs="*")
    parser.add_argument("--out", default=os.path.join(os.path.dirname(HERE), "fixtures", "hosts"))
    args = parser.parse_intermixed_args()
    install()
    if args.what == "install":
        return
    import hosts
    for host in hosts.SCENES:
        for name, play in hosts.SCENES[host].items():
            if args.scenes and not any(wanted in (host, host + "/" + name) for wanted in args.scenes):
                continue
            scene = Scene(host, name)
            try:
                play(scene)
            finally:
                scene.end()
            count = fixtures.keep(scene, PINS[host], os.path.join(args.out, host, name))
            print("%s/%s: %s" % (host, name, count))


if __name__ == "__main__":
    main()
