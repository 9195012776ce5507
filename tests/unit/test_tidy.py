"""The repository read by itself: modules say their role, documents agree with the code, nothing is left lying about."""

import ast
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn, get_type_hints

import msgspec
import pytest

from tests import clauses
from verditer import cli
from verditer.core.errors import Code
from verditer.rest import admin
from verditer.rest.operation import BodyKind, Op
from verditer.rest.operations.__main__ import FEATURES, SUPPORT, TABLES, feature_of, operations_document, support_table

ROOT = Path(__file__).parents[2]
SOURCES = sorted(path for folder in ("verditer", "tests", "examples") for path in (ROOT / folder).rglob("*.py"))
SOURCES += sorted((ROOT / "benchmarks").glob("*.py")) + sorted((ROOT / "benchmarks" / "questions").glob("*.py"))
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "changes").glob("*.md")])
ROWS = [(service, op) for service, operations in TABLES.items() for op in operations]
STALE = "run `make docs`"


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def text_of(name: str) -> str:
    return (ROOT / name).read_text()


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_every_module_says_its_role(path: Path) -> None:
    role = ast.get_docstring(ast.parse(path.read_text())) or ""
    assert len(role) > 15
    assert role.partition("\n\n")[0].rstrip().endswith((".", "?", "`"))


@pytest.mark.parametrize("path", [*SOURCES, *DOCUMENTS], ids=name_of)
def test_nothing_is_left_for_later(path: Path) -> None:
    assert re.findall(r"\b(?:TO" r"DO|FIX" r"ME|XX" r"X)\b", path.read_text()) == []


# --- operations ---------------------------------------------------------------------------------------------------------


def test_the_list_of_operations_is_what_the_tables_print() -> None:
    assert text_of("docs/operations.md") == operations_document(), STALE


def test_the_readme_shows_what_the_tables_say() -> None:
    shown = SUPPORT.search(text_of("README.md"))
    assert shown is not None
    assert shown.group() == support_table(), STALE


def test_the_words_of_the_readme_cover_every_operation_and_no_word_is_idle() -> None:
    assert {(service, feature_of(service, op.name)) for service, op in ROWS} == {
        (service, feature) for service in TABLES for feature, _ in FEATURES[service]
    }


@pytest.mark.parametrize(("service", "operations"), TABLES.items())
def test_no_row_hides_another(service: str, operations: Sequence[Op]) -> None:
    """A request goes to the first row that fits, so a row with fewer demands comes after those with more."""
    for number, op in enumerate(operations):
        for before in operations[:number]:
            same = (before.route.level, before.route.restype, before.route.comp) == (
                op.route.level,
                op.route.restype,
                op.route.comp,
            )
            if same and set(before.route.methods) & set(op.route.methods):
                assert not set(before.route.when) <= set(op.route.when), f"{before.name} hides {op.name}"


BUILT = [(service, op) for service, op in ROWS if op.is_built and op.request is not None and not op.takes.lease_request]


@pytest.mark.parametrize(("service", "op"), BUILT, ids=[f"{service}-{op.name}" for service, op in BUILT])
def test_a_row_fills_the_struct_its_function_wants(service: str, op: Op) -> None:
    """What a row takes is wanted, and what cannot be left out has a source: a header, the query, metadata, or the document."""
    assert op.request is not None
    fields = msgspec.structs.fields(op.request)
    refused = [param for param in op.takes.params if get_type_hints(param.parse).get("return") is NoReturn]
    given = {param.field for param in op.takes.params if param not in refused}
    given |= {name for name in ("metadata", "version") if getattr(op.takes, name)}
    assert given <= {field.name for field in fields}
    if op.body.kind is not BodyKind.DOCUMENT and not any(param.required for param in refused):
        assert {field.name for field in fields if field.required} <= given


# --- errors ---------------------------------------------------------------------------------------------------------------


def test_every_error_can_be_caused() -> None:
    text = "\n".join(path.read_text() for path in SOURCES if name_of(path).startswith("verditer/"))
    used = set(re.findall(r"\bCode\.(\w+)", text))
    assert sorted(code.name for code in Code if code.name not in used) == []


def test_the_name_of_an_error_is_not_spelled_twice() -> None:
    """Where a second line has the same code on the wire, it says so; every other name is Azure's own."""
    for code in Code:
        assert code.wire == code.name or code.wire in Code.__members__ or code.wire == "ConditionNotMet"


# --- documents --------------------------------------------------------------------------------------------------------------


def test_the_contract_lists_the_tests_that_cite_it() -> None:
    assert text_of("docs/contract.md") == clauses.contract_document(), STALE


def test_every_clause_that_binds_has_a_test() -> None:
    cited = {number for kind, number in clauses.citations() if kind == "contract"}
    assert sorted(set(clauses.binding_clauses()) - cited) == []


def test_only_clauses_and_races_that_exist_are_cited() -> None:
    known = {"contract": clauses.CLAUSES, "race": clauses.RACES}
    assert [(kind, number) for kind, number in clauses.citations() if number not in known[kind]] == []


def test_every_flag_is_documented() -> None:
    flags = {option for action in cli._parser()._actions for option in action.option_strings}
    rows = re.findall(r"^\| (`-.*?) \|", text_of("docs/running.md").partition("\n## Accounts")[0], re.MULTILINE)
    assert {flag for row in rows for flag in re.findall(r"`(.+?)`", row)} == flags


def test_every_page_of_the_admin_port_is_documented() -> None:
    text = text_of("docs/admin.md")
    assert [page for page in admin.PAGES | admin.CONTROL | admin.OAUTH | admin.TOKENS if f"`{' '.join(page)}`" not in text] == []


def test_every_invariant_that_code_cites_exists() -> None:
    numbers = set(re.findall(r"^(\d+)\. \*\*", text_of("docs/INVARIANTS.md"), re.MULTILINE))
    cited = {number for path in SOURCES for number in re.findall(r"\binvariant (\d+)", path.read_text())}
    assert cited == numbers


def test_the_map_names_every_room() -> None:
    rooms = {f"`{name_of(path.parent)}`" for path in (ROOT / "verditer").glob("*/**/__init__.py")}
    files = {f"`{name_of(path)}`" for path in (ROOT / "verditer").glob("[a-z]*.py")}
    mapped = set(re.findall(r"^\| (`verditer/[\w/.]+`) \|", text_of("docs/MAP.md"), re.MULTILINE))
    assert mapped == rooms | files


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_links_lead_somewhere(path: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text())
    assert [link for link in links if not (path.parent / link).exists()] == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_what_documents_tell_to_make_can_be_made(path: Path) -> None:
    targets = set(re.findall(r"^([a-z]+):", text_of("Makefile"), re.MULTILINE))
    assert set(re.findall(r"(?:`|^)make ([a-z]+)", path.read_text(), re.MULTILINE)) <= targets


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_files_that_documents_name_exist(path: Path) -> None:
    named = re.findall(r"`((?:verditer|tests|rest|core|services|partition|stream|jobs|examples)/[\w/]+\.py)`", path.read_text())
    assert [name for name in named if not (ROOT / name).exists() and not (ROOT / "verditer" / name).exists()] == []


@pytest.mark.parametrize("path", sorted((ROOT / "docs" / "decisions").iterdir()), ids=name_of)
def test_a_decision_has_its_four_parts(path: Path) -> None:
    text = path.read_text()
    assert path.suffix == ".md"
    assert text.startswith("# ")
    parts = re.findall(r"^\*\*(Question|Choice|Reason|What would change it)\.\*\* \S", text, re.MULTILINE)
    assert parts == ["Question", "Choice", "Reason", "What would change it"]


@pytest.mark.parametrize("path", sorted((ROOT / "changes").iterdir()), ids=name_of)
def test_a_change_is_one_sentence_of_a_known_kind(path: Path) -> None:
    assert re.fullmatch(r"[a-z0-9-]+\.md", path.name)
    assert re.fullmatch(r"(Added|Changed|Fixed|Removed): [^\n]+\.\n", path.read_text())


# --- the house --------------------------------------------------------------------------------------------------------------


def test_the_import_linter_knows_every_room() -> None:
    contracts = tomllib.loads(text_of("pyproject.toml"))["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    known = {room.strip() for layer in layers for room in layer.split("|")}
    rooms = {f"verditer.{path.parent.name}" for path in (ROOT / "verditer").glob("*/__init__.py")}
    assert rooms | {"verditer.app", "verditer.workers", "verditer.cli"} == known
    assert any(contract["type"] == "forbidden" and contract["source_modules"] == ["verditer.rest"] for contract in contracts)


def test_every_kind_of_test_that_has_to_be_asked_for_is_documented() -> None:
    markers = tomllib.loads(text_of("pyproject.toml"))["tool"]["pytest"]["ini_options"].get("markers", [])
    names = [marker.partition(":")[0] for marker in markers]
    assert [name for name in names if f"-m {name}" not in text_of("docs/HACKING.md")] == []


def test_ci_runs_what_developers_run() -> None:
    assert re.findall(r"^make \w+$", text_of(".ci/run"), re.MULTILINE) == ["make check", "make test"]
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o111


def test_numbers_on_the_wire_are_written_in_ascii() -> None:
    r"""`\d` reads the digits of every script, and so does `int`."""
    assert [name_of(path) for path in SOURCES if name_of(path).startswith("verditer/") and r"\d" in path.read_text()] == []
