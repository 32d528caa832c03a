"""The list of operations, `bindings/surface.toml`, and what the package has: the same names, parameters, defaults and errors."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import acpdb
import pytest

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib

FILE = next(
    (folder / "surface.toml" for folder in Path(__file__).resolve().parents if (folder / "surface.toml").is_file()),
    None,
)
assert FILE is not None, "surface.toml is beside the tests, or above them"
SURFACE: dict[str, Any] = tomllib.loads(FILE.read_text())


def parameters(function: Any) -> list[str]:
    """Parameters as the list spells them: `name`, `name = default`, `*names`; what has to be named stands behind `*`."""
    told: list[str] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if name in ("self", "cls"):
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in told and not any(it.startswith("*") for it in told):
            told.append("*")
        mark = "*" if parameter.kind is parameter.VAR_POSITIONAL else ""
        default = "" if parameter.default is parameter.empty else f" = {spelled(parameter.default)}"
        told.append(f"{mark}{name}{default}")
    return told


def spelled(value: object) -> str:
    words = {None: "none", True: "true", False: "false"}
    if value is ... or value == () or value == []:
        return "[]"
    return words[value] if value is None or isinstance(value, bool) else repr(value).replace("'", '"')


def found() -> dict[str, list[str]]:
    """All operations of the package."""
    all_: dict[str, list[str]] = {}
    for name in acpdb.__all__:
        thing = getattr(acpdb, name)
        if inspect.isfunction(thing):
            all_[name] = parameters(thing)
        elif inspect.isclass(thing) and not issubclass(thing, Exception):
            for inner in vars(thing):
                member = inspect.getattr_static(thing, inner)
                is_function = callable(member) or isinstance(member, staticmethod)
                if not inner.startswith("_") and is_function:
                    all_[f"{name}.{inner}"] = parameters(getattr(thing, inner))
    return all_


def test_operations_have_the_names_parameters_and_defaults_of_the_list() -> None:
    listed = {name: row["parameters"] for name, row in SURFACE["operations"].items()}
    assert found() == listed


def test_errors_have_the_names_and_codes_of_the_list() -> None:
    classes = {name: getattr(acpdb, name).code for name in acpdb.__all__ if name.endswith("Error")}
    assert classes == SURFACE["errors"]


@pytest.mark.parametrize("fact", SURFACE["facts"])
def test_facts_have_the_fields_of_the_programs_lines(fact: str) -> None:
    named = {it.split(" ")[0].lstrip("*") for it in SURFACE["operations"][f"Entry.{fact}"]["parameters"]} - {""}
    only_here = set(SURFACE["facts"][fact].get("only_here", []))
    assert set(SURFACE["facts"][fact]["fields"]) == named - only_here and only_here <= named


def test_errors_that_operations_name_are_in_the_list() -> None:
    for name, row in SURFACE["operations"].items():
        for code in row.get("errors", []):
            assert code in SURFACE["errors"].values(), f"{name}: there is no error {code}"
