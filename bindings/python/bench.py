"""What the package costs beside the library: the same appends and contexts from Python and from Rust, in one run, in time of the
processor of all threads. Other work of the machine makes the time of a clock longer.

cargo build --release -p acpdb-python --example append; python bench.py PATH-OF-THAT-EXAMPLE [COUNT]
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from statistics import median

import acpdb


def ours(folder: str, count: int) -> list[float]:
    """Nanoseconds of an append, of a context of a megabyte as a request's bytes, and at best of that as data and of one of 2000 items."""
    text = "x" * 200
    with acpdb.open(folder, durability="os", index=False) as store:
        session = store.session("s1")
        session.append(acpdb.Entry.message("user", text))
        begun = time.process_time_ns()
        for _ in range(count):
            session.append(acpdb.Entry.message("user", text))
        append = (time.process_time_ns() - begun) / count
        large = store.session("large")
        large.append(*[acpdb.Entry.message("user", "y" * (16 << 10)) for _ in range(64)])
        view = large.view()
        view.export("anthropic")
        begun = time.process_time_ns()
        for _ in range(20):
            view.export("anthropic")
        body = (time.process_time_ns() - begun) / 20
        rows = store.session("rows")
        rows.append(*[acpdb.Entry.message("user", text) for _ in range(2000)])
        return [append, body, best(view.context), best(rows.view().context)]


def best(work: Callable[[], object]) -> int:
    """Nanoseconds of the fastest of twenty calls."""
    times: list[int] = []
    for _ in range(20):
        begun = time.process_time_ns()
        work()
        times.append(time.process_time_ns() - begun)
    return min(times)


def together(threads: int, each: int) -> float:
    """Appends a second of so many threads on one store, each durable before the next of its thread."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("ACPDB_BENCH_DIR")) as folder, acpdb.open(folder, index=False) as store:

        def work(number: int) -> None:
            session = store.session(f"s{number}")
            for _ in range(each):
                session.append(acpdb.Entry.message("user", "x" * 200))

        running = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
        begun = time.perf_counter()
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
        return threads * each / (time.perf_counter() - begun)


def flush() -> float:
    """Milliseconds that this disk takes for one sync of a few hundred bytes."""
    with tempfile.TemporaryFile(dir=os.environ.get("ACPDB_BENCH_DIR")) as file:
        times: list[float] = []
        for _ in range(200):
            file.write(b"x" * 300)
            file.flush()
            begun = time.perf_counter()
            os.fdatasync(file.fileno())
            times.append(time.perf_counter() - begun)
    return median(times) * 1000


def resident() -> int:
    """Bytes of memory that this process has."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def main() -> None:
    program, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 5_000
    python: list[list[float]] = []
    rust: list[list[float]] = []
    for _ in range(15):
        with tempfile.TemporaryDirectory() as folder:
            python.append(ours(folder, count))
        with tempfile.TemporaryDirectory() as folder:
            told = subprocess.run([program, folder, str(count)], capture_output=True, text=True, check=True).stdout
            rust.append([float(line) for line in told.split()])
    for place, what in enumerate(["append", "context of 1 MiB", "the same as data", "2000 items as data"]):
        own, theirs = median(run[place] for run in python), median(run[place] for run in rust)
        print(f"{what}: {own / 1000:.2f} us in Python, {theirs / 1000:.2f} us in Rust, {(own - theirs) / 1000:+.2f} us, {own / theirs:.2f}x")
    one, eight = together(1, 2000), together(8, 2000)
    print(f"durable appends: {one:.0f} a second of one thread, {eight:.0f} of eight, {eight / one:.1f}x; a flush takes {flush():.2f} ms")
    entries = [acpdb.Entry.message("user", "x" * 200) for _ in range(1000)]
    before = resident()
    for _ in range(1_000_000):
        entries[0].of_record("{}")
    print(f"memory after 10^6 calls: {resident() - before:+} bytes; load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
