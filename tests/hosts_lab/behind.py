#!/usr/bin/env python3
"""Plays hosts behind `acpdb run`, which changes none of their settings.

    behind.py ACPDB              # all scenes of all hosts, and a table
    behind.py ACPDB codex        # those of one host
    behind.py ACPDB codex/pruned # one

A file is read, edited and searched, eight times. In mode record each byte that a host sends reaches the provider, and each byte of
an answer the host; in mode prune none of the eight stale copies does, until they are restored. Then something fails: the host ends its task.
"""
import fcntl
import glob
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter

import attached
import hosts
import lab
import saved

PROGRAM = os.path.abspath(sys.argv[1])
LAST = "value_239 = compute(239)"
PROMPT, NEXT = "Do the work. <play:cycles>", "And look once more. <play:second>"
FAULTS = attached.FAULTS
fault, acpdb = attached.fault, attached.acpdb


class Behind(lab.Scene):
    """A scene whose host runs behind acpdb."""

    mode, words, tapped, during = "record", (), False, None

    def run(self, *command, lines=None, until=None):
        host, *rest = command
        if self.tapped:
            os.makedirs(self.root + "/tap", exist_ok=True)
            os.makedirs(self.root + "/bin", exist_ok=True)
            link = self.root + "/bin/" + host
            if not os.path.lexists(link):
                os.symlink(os.path.join(lab.HERE, "tap.py"), link)
            self.environment.update(LAB_TAP=self.root + "/tap", LAB_REAL=shutil.which(host, path=self.environment["PATH"]))
            host = link
        if self.mode is not None:
            host = [PROGRAM, "--db", self.root + "/store", "run", "--mode", self.mode, *self.words, "--", host]
        else:
            host = [host]
        if self.during:
            threading.Thread(target=self.during, args=(self,), daemon=True).start()
        return super().run(*host, *rest, lines=lines, until=until)


def play(scene, prompt, *words):
    """The host finds its provider by its variable alone."""
    host = scene.host
    if host == "codex":
        scene.environment.update(CODEX_HOME=scene.home + "/.codex", OPENAI_BASE_URL=scene.url + "/v1", CODEX_API_KEY="lab")
        scene.put("home/.codex/config.toml", CODEX % scene.project)
        # Without acpdb a word tells what acpdb tells with one.
        own = [] if scene.mode else ["-c", 'openai_base_url="%s/v1"' % scene.url]
        return scene.run("codex", *own, "exec", "--dangerously-bypass-approvals-and-sandbox", "--json", *words, prompt)
    if host == "opencode":
        scene.environment.update(ANTHROPIC_BASE_URL=scene.url + "/v1", ANTHROPIC_API_KEY="lab")
        return hosts.opencode(scene, *words, prompt=prompt, own=True)
    if host == "copilot":
        scene.words = ("--session", "named", "--variable", "COPILOT_PROVIDER_BASE_URL")
    return getattr(hosts, host)(scene, *words, prompt=prompt)


CODEX = """model = "gpt-5.5"
check_for_update_on_startup = false
[analytics]
enabled = false
[projects."%s"]
trust_level = "trusted"
"""


def again(scene, prompt=NEXT):
    words = {"codex": ["resume", "--last"], "gemini": ["--resume", "latest"]}.get(scene.host, ["--continue"])
    return play(scene, prompt, *words)


def ends(scene, code):
    attached.ends(scene, code)
    return not code


def sent(scene):
    """The requests with tools as the provider got them: number and text."""
    found = []
    for path in sorted(glob.glob(scene.wire + "/*.body")):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        if '"tools"' in text:
            found.append(text)
    return found


def copies(scene):
    return sent(scene)[-1].count(LAST)


def bill(scene):
    """Steps, tokens, share that was cached, dollars, as in saved.py; of what was sent so far."""
    price = saved.prices(PROGRAM)[saved.PRICED.get(scene.host, "claude-opus-5-5")]
    steps, tokens, read, _, dollars = saved.counted(scene, price)
    return "%d steps, %d tokens, %.1f %% cached, $%.3f" % (steps, tokens, 100 * read / max(1, tokens), dollars)


def said(scene):
    with open("%s/%d.err" % (scene.root, scene.said), encoding="utf-8", errors="replace") as file:
        return file.read()


def bytes_of(pattern):
    """How often each body comes."""
    found = Counter()
    for path in glob.glob(pattern):
        with open(path, "rb") as file:
            found[file.read()] += 1
    return found


def recorded(scene):
    """Each body of a request and of an answer is the same on both sides of acpdb, and what was exchanged is in the store."""
    scene.tapped = True
    before = tree(scene)
    ends(scene, play(scene, PROMPT))
    ends(scene, again(scene))
    for here, there in (("tap/*.sent", "wire/*.body"), ("tap/*.got", "wire/*.answer")):
        one, other = bytes_of(scene.root + "/" + here), bytes_of(scene.root + "/" + there)
        same = sum((one & other).values())
        if not same or same != sum(one.values()) or same != sum(other.values()):
            fault(scene, "%s and %s: %d and %d bodies, %d the same" % (here, there, sum(one.values()), sum(other.values()), same))
    rows = acpdb(scene, "store", "log", "kind:host_recorded", "--json").count('"proxy/request"')
    if rows < len(sent(scene)):
        fault(scene, "%d exchanges are recorded, %d requests came" % (rows, len(sent(scene))))
    new = [path for path in tree(scene) - before if "acpdb" in os.path.basename(path) or "/.acpdb/" in path]
    if new:
        fault(scene, "files are left: %s" % new)
    scene.note = "%d copies; %s" % (copies(scene), bill(scene))


def tree(scene):
    return {os.path.join(folder, name) for part in (scene.home, scene.project) for folder, _, names in os.walk(part) for name in names}


def pruned(scene, policy=("acp", "serve.mode=eager")):
    """No stale copy is on the wire; restored ones are."""
    attached.acpdb(scene, "store", "policy", "set", *policy)
    scene.mode = "prune"
    # Hosts that name no session belong to the one that is named.
    scene.words = ("--session", "named")
    ends(scene, play(scene, PROMPT))
    ends(scene, again(scene))
    left = copies(scene)
    names = [name for name in attached.sessions(scene) if "/" not in name]
    if len(names) != 1:
        fault(scene, "the store has the sessions %s" % names)
    before = bill(scene)
    items = json.loads(acpdb(scene, "store", "history", names[0], "--json") or "{}").get("items", [])
    hidden = [row["item"] for row in items if row["kind"] == "call" and row["state"] == "tombstone"]
    acpdb(scene, "store", "context", "restore", "--session", names[0], *hidden)
    ends(scene, again(scene, "Once more. <play:helper>"))
    back = copies(scene)
    scene.note = "%d copies, %d after restore; before it %s" % (left, back, before)
    return left, back


def eager(scene):
    left, back = pruned(scene)
    # A search shows the line once. The last view by a command is superseded by no other command (docs/RULES.md, Repeat).
    times = 2 if host_sends_twice(scene) else 1
    most = {"codex": 2, "copilot": 2}.get(scene.host, 1) * times
    if left > most or back != 9 * times:
        fault(scene, "%d copies are on the wire instead of %d, and %d instead of %d after they were restored" % (left, most, back, 9 * times))


def host_sends_twice(scene):
    """Gemini CLI sends each old result twice once a session is resumed."""
    return scene.host == "gemini"


def economy(scene):
    left, _ = pruned(scene, ("economy",))
    if left > 3:
        fault(scene, "%d copies are on the wire" % left)


def copied(scene):
    """A model that writes a file again with the parameters that it sees writes what it wrote, and no placeholder."""
    attached.acpdb(scene, "store", "policy", "set", "economy", "serve.mode=eager")
    scene.mode = "prune"
    ends(scene, play(scene, "Write it. <play:copies>"))
    with open(os.path.join(lab.HERE, "plays.json"), encoding="utf-8") as file:
        wrote = json.load(file)["copies"][0]["calls"][0]["text"]
    with open(scene.project + "/src/copy.txt", encoding="utf-8") as file:
        copy = file.read()
    scene.note = "%d requests, %d characters written, %d again" % (len(sent(scene)), len(wrote), len(copy))
    if copy.strip() != wrote.strip():
        fault(scene, "the copy is %r" % copy[:300])


def usual(scene):
    left, _ = pruned(scene, ("acp",))
    if left > 2:
        fault(scene, "%d copies are on the wire" % left)


def faulty(scene, during=None, mode="prune"):
    """Something fails while the host works."""
    scene.mode = mode
    began = time.monotonic()
    code = play(scene, PROMPT)
    scene.during = None
    scene.note = "ended with %s in %.0f s, %d requests, told: %s" % (
        code, time.monotonic() - began, len(sent(scene)), " | ".join(line for line in said(scene).splitlines() if line.startswith(("warning", "note", "error")))[:300])
    return code


def at_request(count, act):
    def wait(scene):
        while len(glob.glob(scene.wire + "/*.body")) < count:
            time.sleep(0.02)
        act(scene)
    return wait


def damage(scene):
    for path in glob.glob(scene.root + "/store/log/*"):
        with open(path, "r+b") as file:
            file.seek(max(0, os.path.getsize(path) // 2 - 32))
            file.write(random.Random(1).randbytes(64))


def damaged(scene):
    scene.during = at_request(6, damage)
    ends(scene, faulty(scene))


def removed(scene):
    scene.during = at_request(6, lambda scene: shutil.rmtree(scene.root + "/store", ignore_errors=True))
    ends(scene, faulty(scene))


def no_store(scene):
    with open(scene.root + "/store", "w", encoding="utf-8") as file:
        file.write("no folder")
    ends(scene, faulty(scene))


def locked(scene):
    held = []

    def hold(scene):
        for path in glob.glob(scene.root + "/store/**", recursive=True):
            if os.path.isfile(path):
                file = open(path, "r+b")
                fcntl.flock(file, fcntl.LOCK_EX)
                held.append(file)
    acpdb(scene, "store", "init")
    hold(scene)
    ends(scene, faulty(scene))
    for file in held:
        file.close()


def full(scene):
    """The store is on a disk of 200 kB."""
    os.makedirs(scene.root + "/store")
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", scene.root + "/store"], check=False)
    if done.returncode:
        scene.note = "skipped: a small disk needs root"
        return
    try:
        ends(scene, faulty(scene))
    finally:
        subprocess.run(["umount", scene.root + "/store"], check=False)


def runs(scene):
    """The process of acpdb, and its host."""
    found = []
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            with open(path, "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        if words[:1] == [PROGRAM.encode()] and scene.root.encode() + b"/store" in words:
            found.append(int(path.split("/")[2]))
    return found


def killed(scene):
    """acpdb is killed while the host works."""
    scene.during = at_request(6, lambda scene: [os.kill(pid, signal.SIGKILL) for pid in runs(scene)])
    faulty(scene)
    wait_for_end(scene)


def wait_for_end(scene):
    """A host that outlives acpdb ends its task."""
    began = time.monotonic()
    while time.monotonic() - began < 200 and works_in(scene.project):
        time.sleep(0.5)
    with open("%s/%d.out" % (scene.root, scene.said), "rb") as file:
        last = file.read()
    scene.note += "; its end came %.0f s later, %s, %d requests" % (
        time.monotonic() - began, "done" if b"The work is done" in last else "not done", len(sent(scene)))
    if b"The work is done" not in last:
        fault(scene, "the task is not done: " + last[-300:].decode("utf-8", "replace"))


def works_in(folder):
    """Whether a process has this working folder; one that has ended has none."""
    for path in glob.glob("/proc/[0-9]*/cwd"):
        try:
            if os.readlink(path) == folder:
                return True
        except OSError:
            continue
    return False


def away(scene):
    """The provider is killed while the host works: the host is told, and ends."""
    scene.during = at_request(6, lambda scene: scene.provider.kill())
    scene.environment.update(CLAUDE_CODE_MAX_RETRIES="2")
    faulty(scene)
    if "no end" in scene.note:
        fault(scene, "the host did not end")


COMMON = [recorded, usual, economy, eager]
BROKEN = [no_store, damaged, removed, locked, full, killed, away]
# Gemini CLI gives up at an answer that breaks off, and goes on asking a provider that is away for minutes, with acpdb and without.
SCENES = {"claude": COMMON + [copied] + BROKEN, "codex": COMMON + BROKEN, "gemini": COMMON + [copied] + BROKEN[:-2],
          "opencode": [recorded], "copilot": COMMON + [copied]}


def main():
    wanted = sys.argv[2:]
    rows = []
    for host, plays in SCENES.items():
        for scene_play in plays:
            name = scene_play.__name__
            if wanted and not any(word in (host, host + "/" + name, name) for word in wanted):
                continue
            scene = Behind(host, "behind-" + name)
            scene.put("project/src/long.py", "".join("value_%d = compute(%d)\n" % (n, n) for n in range(240)))
            scene.model, scene.note = "claude-lab", ""
            before = len(FAULTS)
            try:
                scene_play(scene)
            finally:
                scene.end()
            print("%s/%s: %s: %s" % (host, name, scene.note, "as it should be" if len(FAULTS) == before else FAULTS[before:]), flush=True)
            rows.append((host, name, scene.note))
            if len(FAULTS) == before and not os.environ.get("HOSTS_KEEP"):
                shutil.rmtree(scene.root, ignore_errors=True)
    sys.exit("\n".join(FAULTS) or 0)


if __name__ == "__main__":
    main()
