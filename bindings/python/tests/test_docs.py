"""The pages of the book: their Python runs, block after block, in an empty folder."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

PAGES = ["bindings/python/README.md", "docs/PYTHON.md"]
#: Pages that need a framework.
ADAPTERS = [
    "docs/adapters/ANTHROPIC_MEMORY.md",
    "docs/adapters/CLAUDE.md",
    "docs/adapters/GOOGLE_ADK.md",
    "docs/adapters/LANGCHAIN.md",
    "docs/adapters/LANGGRAPH.md",
    "docs/adapters/LITELLM.md",
    "docs/adapters/OPENAI.md",
    "docs/adapters/PYDANTIC_AI.md",
]
if os.environ.get("BARE", "0") == "0":
    PAGES += ADAPTERS
ROOT = next(folder for folder in Path(__file__).resolve().parents if (folder / "docs" / "PYTHON.md").is_file())


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_shows_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / page).read_text()
    blocks = [(text[: found.start(1)].count("\n"), found[1]) for found in re.finditer(r"```python\n(.*?)```", text, re.S)]
    assert blocks, f"{page} shows no Python"
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "page"}
    for line, block in blocks:
        exec(compile("\n" * line + block, str(ROOT / page), "exec"), names)
