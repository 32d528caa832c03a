"""Examples in docstrings, types, and that stubs say what is there."""

from __future__ import annotations

import doctest
import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import acpdb
import acpdb._acpdb
import acpdb._errors
import acpdb._session
import acpdb._store
import acpdb._view
import acpdb.aio
import pytest
from test_docs import PAGES, ROOT

#: The sources where they are, else what was installed.
PACKAGE = Path(acpdb.__file__).resolve().parent
MODULES = [acpdb, acpdb._errors, acpdb._session, acpdb._store, acpdb._view, acpdb.aio]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: str(module.__name__))
def test_examples_of_a_module_hold(module: object) -> None:
    result = doctest.testmod(module)  # type: ignore[arg-type]
    assert result.attempted > 0 and result.failed == 0


def test_examples_of_entries_hold() -> None:
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner()
    for name, member in inspect.getmembers(acpdb.Entry):
        text = inspect.getdoc(member) or ""
        if not name.startswith("__") and ">>>" in text:
            runner.run(parser.get_doctest(text, {}, f"Entry.{name}", None, None))
    assert runner.tries > 5 and runner.failures == 0


def test_all_that_is_public_is_described() -> None:
    for name in acpdb.__all__:
        thing = getattr(acpdb, name)
        assert name == "__version__" or inspect.getdoc(thing), f"acpdb.{name} has no docstring"
        if inspect.isclass(thing):
            for inner, member in vars(thing).items():
                is_public = not inner.startswith("_") and (callable(member) or isinstance(member, property))
                assert not is_public or inspect.getdoc(member), f"acpdb.{name}.{inner} has no docstring"


@pytest.mark.parametrize(
    "command",
    # A path into the packages that are installed would make mypy take its neighbours for sources, which shadow its own.
    [("mypy", "--strict", "-p", "acpdb"), ("pyright", "-p", "."), ("mypy.stubtest", "acpdb._acpdb")],
    ids=lambda it: it[0],
)
def test_types_hold(command: tuple[str, ...], tmp_path: Path) -> None:
    if command[0] == "pyright":
        settings = {"include": [str(PACKAGE)], "typeCheckingMode": "strict", "pythonVersion": "3.10"}
        settings["exclude"] = [str(PACKAGE / "adapters")]
        (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
        command = ("pyright", "-p", str(tmp_path))
    if command[0] == "mypy":
        # The frameworks that adapters are written for.
        bare = ("--exclude", "adapters") if os.environ.get("BARE", "0") != "0" else ()
        command = (*command, *bare)
        # What the pages show is held to the same.
        for page in PAGES:
            name = f"page_{Path(page).parent.name}_{Path(page).stem}"
            blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.S)
            (tmp_path / f"{name}.py").write_text("\n".join(blocks))
            command = (*command, "-m", name)
    done = subprocess.run([sys.executable, "-m", *command], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
