"""The written rules of the source tree, each kept by reading it."""

from __future__ import annotations

import ast
import importlib
import os
import pickle
import pkgutil
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import proctor
from proctor import errors

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "proctor"
FILES = sorted(SOURCE.rglob("*.py"))
PACKAGES = sorted({"proctor", *(f"proctor.{path.parent.name}" for path in SOURCE.glob("*/__init__.py"))})
PLATFORM_SWITCHES = {"process/__init__.py", "dialects/detect.py", "keeper/zygote.py"}
FORBIDDEN_NAMES = {"utils", "util", "helpers", "helper", "common", "misc", "manager", "managers", "base_utils"}


def names_of(files: list[Path]) -> list[str]:
    return [path.relative_to(SOURCE).as_posix() for path in files]


@pytest.mark.requirement("I2-layers")
def test_every_import_goes_down_the_layers() -> None:
    done = subprocess.run(
        [str(Path(sys.executable).with_name("lint-imports")), "--config", str(ROOT / "pyproject.toml")],
        check=False,
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.requirement("I2-layers")
def test_every_package_is_in_the_layers() -> None:
    listed = set(re.findall(r"[a-z_]+", re.search(r"layers = \[(.*?)\]", (ROOT / "pyproject.toml").read_text(), re.DOTALL)[1]))  # type: ignore[index]
    present = {path.stem for path in SOURCE.glob("*.py") if path.stem != "__init__"} | {
        path.parent.name for path in SOURCE.glob("*/__init__.py")
    }
    assert present - listed == set()


@pytest.mark.requirement("I2-layout")
def test_the_platform_is_looked_at_in_its_places_only() -> None:
    found = {name for path, name in zip(FILES, names_of(FILES), strict=True) if "sys.platform" in _code_of(path)}
    assert found - PLATFORM_SWITCHES == set()


def _code_of(path: Path) -> str:
    tree = ast.parse(path.read_text())
    return "\n".join(ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute))


@pytest.mark.requirement("I2-layout")
def test_a_module_is_named_for_what_it_is() -> None:
    assert {path.stem for path in FILES} & FORBIDDEN_NAMES == set()


@pytest.mark.requirement("I2-layout")
@pytest.mark.parametrize("package", PACKAGES)
def test_an_init_holds_no_logic(package: str) -> None:
    if package == "proctor":
        return  # the root is lazy (PEP 562)
    path = SOURCE / package.removeprefix("proctor.") / "__init__.py"
    for node in ast.parse(path.read_text()).body:
        switch = isinstance(node, ast.If) and "sys.platform" in ast.unparse(node.test)
        plain = isinstance(node, (ast.Import, ast.ImportFrom, ast.Expr, ast.Assign))
        assert switch or plain, ast.unparse(node)


@pytest.mark.requirement("I2-layout")
@pytest.mark.parametrize("package", PACKAGES)
def test_all_names_what_is_there(package: str) -> None:
    module = importlib.import_module(package)
    for name in module.__all__:
        assert getattr(module, name) is not None
    assert len(set(module.__all__)) == len(module.__all__)
    imported = _imported_by(SOURCE.joinpath(*package.split(".")[1:], "__init__.py"))
    assert imported - {"annotations", "sys"} <= set(module.__all__)


def _imported_by(init: Path) -> set[str]:
    """Return the names that a package takes from its modules or gives away."""
    imports = [node for node in ast.parse(init.read_text()).body if isinstance(node, (ast.Import, ast.ImportFrom))]
    return {name.asname or name.name for node in imports for name in node.names}


@pytest.mark.requirement("I2-layout")
def test_what_a_platform_is_called_is_asked_in_one_way() -> None:
    """Other ways than ``sys.platform`` would hide a platform switch."""
    spellings = re.compile(r"\bos\.name\b|platform\.(system|machine|uname)\(|from sys import .*platform")
    assert [path for path in FILES if spellings.search(path.read_text())] == []


def _errors() -> Iterator[type[errors.ProctorError]]:
    for name in errors.__all__:
        kind = getattr(errors, name)
        if isinstance(kind, type) and issubclass(kind, BaseException):
            assert issubclass(kind, errors.ProctorError), name
            yield kind


@pytest.mark.requirement("I2-layout")
@pytest.mark.parametrize("kind", list(_errors()))
def test_every_public_error_is_of_the_one_tree_and_pickles(kind: type[errors.ProctorError]) -> None:
    assert issubclass(kind, errors.ProctorError)
    copy = pickle.loads(pickle.dumps(kind(errors.ErrorCode.NOT_RUNNING, "it", "do that")))  # noqa: S301 - made here
    assert (type(copy), copy.code, copy.message, copy.hint) == (kind, errors.ErrorCode.NOT_RUNNING, "it", "do that")


@pytest.mark.requirement("I2-layout")
def test_every_module_has_a_docstring_that_says_what_it_is() -> None:
    for path in FILES:
        assert ast.get_docstring(ast.parse(path.read_text())), path


@pytest.mark.requirement("I2-layout")
def test_nothing_module_level_changes() -> None:
    """A module-level list, set or dict is a table in capitals, which nothing assigns to or mutates in place by name."""
    for path in FILES:
        tree = ast.parse(path.read_text())
        for node in tree.body:
            if isinstance(node, ast.Assign):
                targets = node.targets
            elif isinstance(node, ast.AnnAssign):
                targets = [node.target]
            else:
                continue
            names = [target.id for target in targets if isinstance(target, ast.Name)]
            assert not _is_made_to_be_filled(node.value), f"{path}: {names}"
            if isinstance(node.value, (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)):
                assert all(name.isupper() or name == "__all__" for name in names), f"{path}: {names}"


def _is_made_to_be_filled(value: ast.expr | None) -> bool:
    """Tell whether a value is an empty table, which is of use only to somebody who fills it later."""
    if isinstance(value, ast.Call):
        maker = value.func.attr if isinstance(value.func, ast.Attribute) else getattr(value.func, "id", "")
        return maker in {"list", "dict", "set", "bytearray", "defaultdict", "deque", "Counter", "OrderedDict"}
    return (isinstance(value, (ast.List, ast.Set)) and not value.elts) or (isinstance(value, ast.Dict) and not value.keys)


@pytest.mark.requirement("I2-layout")
def test_no_function_rebinds_a_name_of_its_module() -> None:
    assert [path for path in FILES if any(isinstance(node, ast.Global) for node in ast.walk(ast.parse(path.read_text())))] == []


@pytest.mark.requirement("I2-start-up")
@pytest.mark.parametrize(
    ("module", "unwanted"),
    [
        ("proctor", {"typing", "dataclasses", "json", "enum", "re"}),
        ("proctor.__main__", {"typing", "dataclasses", "json", "enum", "re", "argparse", "proctor.cli", "proctor.errors"}),
        ("proctor.keeper", {"asyncio", "sqlite3", "subprocess", "logging", "inspect", "dataclasses", "chardet", "rich"}),
        ("proctor.keeper.zygote", {"asyncio", "sqlite3", "subprocess", "logging", "inspect", "dataclasses", "chardet", "rich"}),
        ("proctor.cli.run", {"asyncio", "subprocess", "logging", "inspect", "dataclasses", "chardet", "rich", "tempfile", "shutil"}),
    ],
)
def test_the_short_paths_import_little(module: str, unwanted: set[str]) -> None:
    code = f"import sys; import {module}; print(' '.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-S", "-I", "-c", f"import sys; sys.path.insert(0, {str(SOURCE.parent)!r}); {code}"],
        check=True,
        capture_output=True,
        text=True,
    )
    assert set(done.stdout.split()) & unwanted == set()


@pytest.mark.requirement("I2-layout")
def test_every_gotcha_names_a_test_that_exists() -> None:
    named = re.findall(r"`(test_\w+)`", (ROOT / "docs" / "gotchas.md").read_text())
    there = {name for path in (ROOT / "tests").rglob("test_*.py") for name in re.findall(r"def (test_\w+)", path.read_text())}
    assert len(named) > 10
    assert [name for name in named if name not in there] == []


@pytest.mark.requirement("I2-layout")
def test_every_decision_is_written_down_in_its_form() -> None:
    for path in (ROOT / "docs" / "adr").glob("*.md"):
        text = path.read_text()
        assert re.match(r"# \d+\. ", text), path
        assert all(f"## {part}" in text for part in ("Context", "Choice", "Consequences")), path


@pytest.mark.requirement("I2-requirements")
def test_a_requirement_without_a_test_is_found() -> None:
    sys.path.insert(0, str(ROOT))
    try:
        generate = importlib.import_module("tools.generate")
    finally:
        sys.path.remove(str(ROOT))
    table, missing = generate.requirements()
    assert "I2-requirements" in table
    assert isinstance(missing, list)
    found = generate._marked_tests()
    assert any("test_a_requirement_without_a_test_is_found" in test for test in found["I2-requirements"])
    assert found.get("I2-nowhere") is None


@pytest.mark.requirement("I2-layout")
def test_public_names_of_the_root_are_all_loadable_and_typed() -> None:
    assert (SOURCE / "py.typed").exists()
    assert set(dir(proctor)) >= {"open", "open_sync"}
    for name in proctor.__all__:
        getattr(proctor, name)


@pytest.mark.requirement("I2-layout")
def test_every_source_package_has_its_tests() -> None:
    packages = {info.name for info in pkgutil.iter_modules([str(SOURCE)]) if info.ispkg} - {"testing"}
    covered = {path.name for path in (ROOT / "tests").iterdir() if path.is_dir()}
    assert packages - covered == set()
    assert os.listdir(ROOT / "tests" / "compat")
