"""What tests share: a store in a folder of its own, and Python in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import acpdb
import pytest


@pytest.fixture
def store(tmp_path: Path) -> Iterator[acpdb.Store]:
    with acpdb.open(tmp_path / "store") as store:
        yield store


@pytest.fixture
def python(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a script in another interpreter; its first argument is the folder of a store."""

    def run(script: str, timeout: float = 60) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-X", "faulthandler", "-c", script, str(tmp_path / "store")],
            capture_output=True,
            text=True,
            timeout=timeout,
        )

    return run
