"""Anthropic's memory tool (`memory_20250818`): the model's memory files in an acpdb store.

```python
memory = AcpdbMemoryTool(store, project="shop")
client.beta.messages.run_tools(model=.., messages=.., tools=[memory])
```

Each change is one event: what a file said at any moment, and when it changed, stays in the log. Files are texts; nothing is
written to the disk but the store.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from anthropic.lib.tools import BetaAbstractMemoryTool, ToolError
from anthropic.types.beta import (
    BetaMemoryTool20250818CreateCommand,
    BetaMemoryTool20250818DeleteCommand,
    BetaMemoryTool20250818InsertCommand,
    BetaMemoryTool20250818RenameCommand,
    BetaMemoryTool20250818StrReplaceCommand,
    BetaMemoryTool20250818ViewCommand,
)

from .. import Entry, NotFoundError, Store
from .._shapes import At
from . import _records

HOST = "anthropic-memory"
ROOT = "/memories"
LINES_MAX = 999_999
WIDTH = 6

#: What a command answers, the texts that files have then, and the files that are gone.
Change = tuple[str, dict[str, str], list[str]]


class AcpdbMemoryTool(BetaAbstractMemoryTool):
    """Memory files of one project."""

    def __init__(self, store: Store, *, project: str = "memory", **options: Any) -> None:
        super().__init__(**options)
        self.session = store.session(project, host=HOST, title=f"memory files of {project}")

    def files(self, at: At | None = None) -> dict[str, str]:
        """The files and their texts, now or at any moment."""
        return self._read(at)[1]

    def _read(self, at: At | None = None) -> tuple[int, dict[str, str]]:
        """The seq that was read, and the files."""
        files: dict[str, str] = {}
        try:
            view = self.session.view(at)
        except NotFoundError:
            if at is not None:
                raise
            return 0, files
        for record in (json.loads(raw) for _, raw in view.records()):
            for path in record.get("gone", []):
                files.pop(path, None)
            files.update(record.get("files", {}))
        return view.seq, files

    def _change(self, what: str, decide: Callable[[dict[str, str]], Change]) -> str:
        """Records what is decided of the files as they are. If another writer came between, it is decided again."""
        answer = ""

        def made() -> tuple[int, list[Entry]]:
            nonlocal answer
            head, files = self._read()
            answer, changed, gone = decide(files)
            record: dict[str, Any] = {"op": what, "gone": gone, "files": changed}
            return head, [_records.kept(record, f"memory_{what}")]

        _records.decided(self.session, made)
        return answer

    def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        files, path = self.files(), _path(command.path)
        if path in files:
            return _numbered(command.path, files[path], command.view_range)
        below = _below(files, path)
        if not below and path != ROOT:
            raise ToolError(f"The path {command.path} does not exist. Please provide a valid path.")
        rows = [f"{_size(sum(map(_bytes, below.values())))}\t{command.path}"]
        rows += [f"{_size(size)}\t{command.path}/{name}" for name, size in _listed(below, path)]
        head = f"Here're the files and directories up to 2 levels deep in {command.path}, excluding hidden items:"
        return "\n".join([head, *rows])

    def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        path = _path(command.path)

        def decide(files: dict[str, str]) -> Change:
            if path in files or path == ROOT or _below(files, path):
                raise ToolError(f"File {command.path} already exists")
            _no_file_above(files, path)
            return f"File created successfully at: {command.path}", {path: command.file_text}, []

        return self._change("create", decide)

    def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        old, new = command.old_str, command.new_str or ""

        def decide(files: dict[str, str]) -> Change:
            path, text = _text(files, command.path)
            places = [at for at in range(len(text)) if text.startswith(old, at)] if old else []
            if not places:
                raise ToolError(
                    f"No replacement was performed, old_str `{old}` did not appear verbatim in {command.path}."
                )
            if text.count(old) > 1:
                lines = ", ".join(str(text[:at].count("\n") + 1) for at in places)
                raise ToolError(
                    f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: {lines}. "
                    "Please ensure it is unique"
                )
            changed = text.replace(old, new)
            at = text[: places[0]].count("\n")
            lines_ = changed.split("\n")
            shown = [_line(number, lines_[number]) for number in range(max(0, at - 2), min(len(lines_), at + 3))]
            head = "The memory file has been edited. Here is the snippet showing the change (with line numbers):"
            return "\n".join([head, *shown]), {path: changed}, []

        return self._change("str_replace", decide)

    def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        def decide(files: dict[str, str]) -> Change:
            path, text = _text(files, command.path)
            lines = text.split("\n")
            if lines[-1] == "":
                lines.pop()
            if not 0 <= command.insert_line <= len(lines):
                raise ToolError(
                    f"Invalid `insert_line` parameter: {command.insert_line}. "
                    f"It should be within the range [0, {len(lines)}]."
                )
            lines.insert(command.insert_line, command.insert_text.rstrip("\n"))
            changed = "\n".join(lines)
            changed = changed if changed.endswith("\n") else changed + "\n"
            return f"The file {command.path} has been edited.", {path: changed}, []

        return self._change("insert", decide)

    def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        path = _path(command.path)
        if path == ROOT:
            raise ToolError("Cannot delete the /memories directory itself")

        def decide(files: dict[str, str]) -> Change:
            gone = [path] if path in files else list(_below(files, path))
            if not gone:
                raise ToolError(f"The path {command.path} does not exist")
            return f"Successfully deleted {command.path}", {}, gone

        return self._change("delete", decide)

    def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        old, new = _path(command.old_path), _path(command.new_path)
        if old == ROOT:
            raise ToolError("Cannot rename the /memories directory itself")

        def decide(files: dict[str, str]) -> Change:
            if new in files or new == ROOT or _below(files, new):
                raise ToolError(f"The destination {command.new_path} already exists")
            moved = {old: files[old]} if old in files else _below(files, old)
            if not moved:
                raise ToolError(f"The path {command.old_path} does not exist")
            if new.startswith(old + "/"):
                raise ToolError(f"The path {command.old_path} cannot be moved into itself")
            _no_file_above(files, new)
            renamed = {new + path[len(old) :]: text for path, text in moved.items()}
            return f"Successfully renamed {command.old_path} to {command.new_path}", renamed, list(moved)

        return self._change("rename", decide)

    def clear_all_memory(self) -> str:
        return self._change("clear", lambda files: ("All memory cleared", {}, list(files)))


def _text(files: dict[str, str], given: str) -> tuple[str, str]:
    """The path and the text of a file."""
    path = _path(given)
    if path in files:
        return path, files[path]
    if path == ROOT or _below(files, path):
        raise ToolError(f"The path {given} is not a file.")
    raise ToolError(f"The path {given} does not exist. Please provide a valid path.")


def _path(given: str) -> str:
    """A path below the root, without detours."""
    if given != ROOT and not given.startswith(ROOT + "/"):
        raise ToolError(f"Path must start with /memories, got: {given}")
    parts: list[str] = []
    for part in given[len(ROOT) :].split("/"):
        if part == "..":
            if not parts:
                raise ToolError(f"Path {given} would escape /memories directory")
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join([ROOT, *parts])


def _below(files: dict[str, str], path: str) -> dict[str, str]:
    return {name: text for name, text in files.items() if name.startswith(path + "/")}


def _no_file_above(files: dict[str, str], path: str) -> None:
    for end in (at for at, sign in enumerate(path) if sign == "/" and at > len(ROOT)):
        if path[:end] in files:
            raise ToolError(f"The path {path[:end]} is a file, and no directory")


def _listed(below: dict[str, str], path: str) -> list[tuple[str, int]]:
    """Names up to two levels deep, each directory before what is in it, with sizes in bytes."""
    sizes: dict[tuple[str, ...], int] = {}
    folders: set[tuple[str, ...]] = set()
    for name, text in below.items():
        parts = tuple(name[len(path) + 1 :].split("/"))
        for depth in range(1, min(2, len(parts)) + 1):
            sizes[parts[:depth]] = sizes.get(parts[:depth], 0) + _bytes(text)
            if depth < len(parts):
                folders.add(parts[:depth])
    shown = [parts for parts in sorted(sizes) if not any(part.startswith(".") for part in parts)]
    return [("/".join(parts) + ("/" if parts in folders else ""), sizes[parts]) for parts in shown]


def _bytes(text: str) -> int:
    return len(text.encode())


def _size(count: float) -> str:
    for unit in ("B", "K", "M"):
        if count < 1024 or unit == "M":
            break
        count /= 1024
    return f"{count:g}{unit}" if count == int(count) else f"{count:.1f}{unit}"


def _line(number: int, text: str) -> str:
    return f"{number + 1:>{WIDTH}}\t{text}"


def _numbered(given: str, text: str, view_range: list[int] | None) -> str:
    lines = text.split("\n")
    if len(lines) > LINES_MAX:
        raise ToolError(f"File {given} exceeds maximum line limit of 999,999 lines.")
    first, last = 0, len(lines)
    if view_range and len(view_range) == 2:
        first = max(1, view_range[0]) - 1
        last = len(lines) if view_range[1] == -1 else view_range[1]
    shown = [_line(first + number, line) for number, line in enumerate(lines[first:last])]
    return f"Here's the content of {given} with line numbers:\n" + "\n".join(shown)
