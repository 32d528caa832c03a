"""The memory tool over acpdb against the SDK's own over files: the same commands, the same answers."""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import acpdb
import pytest
from acpdb.adapters.anthropic import AcpdbMemoryTool
from anthropic.lib.tools import ToolError
from anthropic.tools import BetaLocalFilesystemMemoryTool

PATHS = ["/memories/a.md", "/memories/b.md", "/memories/d/c.md", "/memories/d/e/f.md", "/memories/d", "/memories"]
WORDS = ["one", "two", "one\ntwo\n", "three\n", "é\n\nlines", ""]


def command(draw: random.Random) -> dict[str, Any]:
    path, word = draw.choice(PATHS), draw.choice(WORDS)
    return draw.choice(
        [
            {"command": "view", "path": path},
            {"command": "view", "path": path, "view_range": [draw.randint(1, 3), draw.choice([-1, 2, 9])]},
            {"command": "create", "path": path, "file_text": draw.choice(WORDS) + word},
            {"command": "create", "path": path, "file_text": word},
            {"command": "str_replace", "path": path, "old_str": draw.choice(WORDS[:4]), "new_str": word},
            {"command": "insert", "path": path, "insert_line": draw.randint(-1, 4), "insert_text": word},
            {"command": "delete", "path": path},
            {"command": "rename", "old_path": path, "new_path": draw.choice(PATHS)},
        ]
    )


def answer(tool: Any, asked: dict[str, Any]) -> tuple[str, str]:
    try:
        said = str(tool.call(asked))
    except ToolError as error:
        return "refused", str(error)
    except OSError as error:
        # What the SDK's tool does not look at before it asks the file system.
        return "refused", type(error).__name__
    if "levels deep" in said:
        # Directories have the size that the file system gives them.
        said = "\n".join(row.split("\t")[-1] for row in said.splitlines())
    return "done", said


@pytest.mark.parametrize("seed", range(12))
def test_answers_are_those_of_the_tool_over_files(store: acpdb.Store, tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    ours, theirs = AcpdbMemoryTool(store), BetaLocalFilesystemMemoryTool(str(tmp_path))
    done = 0
    for _ in range(60):
        asked = command(draw)
        said, expected = answer(ours, asked), answer(theirs, asked)
        if expected[0] == "refused" and expected[1].endswith("Error"):
            assert said[0] == "refused", asked
        else:
            assert said == expected, asked
        done += said[0] == "done"
        # An empty directory is something to a file system, and nothing here.
        for folder in sorted((tmp_path / "memories").rglob("*"), reverse=True):
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()
    assert done > 8


def test_what_a_file_said_stays_known(store: acpdb.Store) -> None:
    tool = AcpdbMemoryTool(store, project="shop")
    tool.call({"command": "create", "path": "/memories/a.md", "file_text": "npm\n"})
    before = store.head()
    tool.call({"command": "str_replace", "path": "/memories/a.md", "old_str": "npm", "new_str": "pnpm"})
    assert AcpdbMemoryTool(store, project="shop").files() == {"/memories/a.md": "pnpm\n"}
    assert tool.files(at=before) == {"/memories/a.md": "npm\n"}
    tool.clear_all_memory()
    assert tool.files() == {} and tool.to_dict() == {"type": "memory_20250818", "name": "memory"}


def test_two_processes_lose_no_change_of_each_other(store: acpdb.Store, python: Callable[..., CompletedProcess[str]]) -> None:
    """Both read, both inserted, and the later one wrote what it had read: 56 of 80 lines were kept, without an error."""
    tool = AcpdbMemoryTool(store)
    tool.call({"command": "create", "path": "/memories/a.md", "file_text": "begun\n"})
    script = """
import sys, acpdb
from acpdb.adapters.anthropic import AcpdbMemoryTool
with acpdb.open(sys.argv[1]) as store:
    tool = AcpdbMemoryTool(store)
    for number in range(40):
        tool.call({"command": "insert", "path": "/memories/a.md", "insert_line": 0, "insert_text": f"theirs {number}"})
"""
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(python, script)
        for number in range(40):
            tool.call({"command": "insert", "path": "/memories/a.md", "insert_line": 1, "insert_text": f"ours {number}"})
        assert other.result().returncode == 0, other.result().stderr
    lines = tool.files()["/memories/a.md"].splitlines()
    assert sorted(lines) == sorted(["begun", *(f"{who} {n}" for who in ("ours", "theirs") for n in range(40))])


@pytest.mark.parametrize("path", ["/etc/passwd", "/memories/../x", "/memories/a/../../x", "/memoriesx", "memories/a"])
def test_no_path_leads_out(store: acpdb.Store, path: str) -> None:
    with pytest.raises(ToolError):
        AcpdbMemoryTool(store).call({"command": "create", "path": path, "file_text": "x"})
