"""The list of operations, `bindings/surface.toml`, and what the package has: the same names, parameters,
defaults, errors and shapes of answers."""

from __future__ import annotations

import dataclasses
import inspect
import json
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import acpdb
import acpdb._shapes as shapes
import pytest
from acpdb import Entry
from acpdb._session import Served

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


def test_results_have_the_fields_of_the_list() -> None:
    """Where marks of the cache go was told in Rust alone, and no test saw it: the list named arguments and rows."""
    found = {
        "Receipt": sorted(name for name in vars(acpdb.Receipt) if not name.startswith("_")),
        "Served": sorted(field.name for field in dataclasses.fields(Served)),
    }
    assert found == {name: row["fields"] for name, row in SURFACE["results"].items()}


def kind(hint: Any) -> str:
    """A type as the list spells it."""
    plain = {str: "text", int: "number", float: "number", bool: "flag", Any: "any"}
    if hint in plain:
        return plain[hint]
    if typing.is_typeddict(hint):
        return str(hint.__name__)
    arguments = typing.get_args(hint)
    if typing.get_origin(hint) is list:
        return f"[{kind(arguments[0])}]"
    if typing.get_origin(hint) is dict:
        return "object"
    assert len(arguments) == 2 and arguments[1] is type(None), hint
    return f"{kind(arguments[0])}?"


def test_shapes_have_the_fields_of_the_list() -> None:
    """A field that the engine had got was in no language's types, and one of Python's was missing in Node."""
    found = {}
    for name, shape in vars(shapes).items():
        if typing.is_typeddict(shape) and not name.startswith("_"):
            hints = typing.get_type_hints(shape)
            found[name] = sorted(f"{it}{'?' * (it in shape.__optional_keys__)} {kind(hints[it])}" for it in hints)
    assert found == {name: row["fields"] for name, row in SURFACE["shapes"].items()}


def misfits(value: Any, spelled_: str, where: str) -> Iterator[str]:
    """Where a value is not what the list says: a name too many, one too few, another type."""
    if spelled_.endswith("?"):
        if value is not None:
            yield from misfits(value, spelled_[:-1], where)
    elif spelled_.startswith("["):
        if not isinstance(value, list):
            yield f"{where} is no list"
            return
        for place, inner in enumerate(value):
            yield from misfits(inner, spelled_[1:-1], f"{where}[{place}]")
    elif spelled_ in SURFACE["shapes"]:
        if not isinstance(value, dict):
            yield f"{where} is no {spelled_}"
            return
        fields = dict(row.split(" ", 1) for row in SURFACE["shapes"][spelled_]["fields"])
        named = {name.rstrip("?") for name in fields}
        yield from (f"{where}.{name} is not in the list" for name in value if name not in named and spelled_ != "Todos")
        for name, inner in fields.items():
            if name.rstrip("?") in value:
                yield from misfits(value[name.rstrip("?")], inner, f"{where}.{name}")
            elif not name.endswith("?"):
                yield f"{where}.{name} is missing"
    else:
        kinds: dict[str, Any] = {"text": str, "number": (int, float), "flag": bool, "object": dict, "any": object}
        if not isinstance(value, kinds[spelled_]) or (spelled_ == "number" and isinstance(value, bool)):
            yield f"{where} is {type(value).__name__}, not {spelled_}"


def test_what_is_answered_has_the_shapes_of_the_list(store: acpdb.Store, tmp_path: Path) -> None:
    session = store.session("s1", project="shop", title="The shop", cwd="/w")
    for number in range(2):
        session.append(
            Entry.step(f"t{number}"),
            Entry.message("user", "look"),
            Entry.tool_started(f"c{number}", "read", {"filePath": "a.rs"}),
            Entry.tool_finished(f"c{number}", "fn main() {}\n" * 50),
            Entry.todos([{"content": "mend it", "status": "in_progress"}]),
        )
    session.append(Entry.tool_started("open", "bash", {"command": "make"}))
    receipt = session.remember(Entry.memory("npm", kind="preference", key="tool"))
    session.remember(Entry.memory("pnpm", kind="preference", key="tool"))
    old, new = session.history(tool="read")
    other = acpdb.open(tmp_path / "other")
    store.backup(tmp_path / "old")
    bad = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "?"}]}
    answers: list[tuple[str, Any]] = [
        ("Resumed", session.resume()),
        ("Context", session.context()),
        ("[ItemRow]", session.history()),
        ("Chain", session.chain(new["item"])),
        ("Explained", session.explain(old["item"])),
        ("Explained", session.explain(new["item"])),
        ("Todos", session.todos()),
        ("[MemoryRow]", session.memory()),
        ("[MemoryRow]", store.memory(project="shop")),
        ("MemoryReceipt", receipt),
        ("Found", store.search("main")),
        ("Found", session.search("main")),
        ("ActReply", session.discard(new["item"])),
        ("ActReply", session.restore(new["item"])),
        ("[Commit]", list(store.subscribe(timeout=0))),
        ("EventRow", store.event(store.head())),
        ("[Finding]", acpdb.lint({"model": "m", "max_tokens": 1, "messages": [bad]}, "anthropic")),
        ("[StreamName]", store.names()),
        ("[SessionRow]", store.sessions()),
        ("StoreInfo", store.info()),
        ("[SimulationRow]", store.simulate(policies=["acp"], modes=["eager"])),
        ("Report", store.verify(deep=True)),
        ("Report", acpdb.verify(store.path)),
        ("Backup", store.backup(tmp_path / "copy")),
        ("EraseReport", store.erase(new["item"], reason="a test")),
        ("SealReport", store.seal(active=True)),
    ]
    other.close()
    (tmp_path / "old").rename(tmp_path / "older")
    for name in ("copy", "older"):
        with acpdb.open(tmp_path / name) as copy:
            copy.session(name).append(Entry.message("user", "hello"))
    with acpdb.open_all(tmp_path / "copy", tmp_path / "older") as several:
        answers += [("[StoreMember]", several.members), ("[StoreFork]", several.forks)]
    assert [fault for spelled_, value in answers for fault in misfits(value, spelled_, spelled_)] == []
    assert all(value for _, value in answers), "nothing that is empty shows its shape"
    # Of JSON's own kinds: a tuple comes back as a list, and a name that is a number as a text.
    assert [spelled_ for spelled_, value in answers if json.loads(json.dumps(value)) != value] == []
    # Shapes inside of others count, too: none is left that no answer showed.
    shown = {part for spelled_, _ in answers for part in inside(spelled_)}
    assert shown == set(SURFACE["shapes"])


def inside(spelled_: str) -> set[str]:
    """A shape and all that stand in it."""
    name = spelled_.strip("[]?")
    if name not in SURFACE["shapes"]:
        return set()
    return {name}.union(*(inside(row.split(" ", 1)[1]) for row in SURFACE["shapes"][name]["fields"]))
