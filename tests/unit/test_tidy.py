"""Checks of the repository itself: docstrings, the operation tables, and the agreement of the documents with the code."""

import ast
import importlib
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import NoReturn, get_args, get_type_hints

import msgspec
import pytest

from tests import changelog, clauses, code_map
from tests.unit.result_types import accepts, attribute_type, members_of, parameter_types
from verditer.core.errors import Code
from verditer.core.records.record import Record
from verditer.flag_parser import parser
from verditer.rest.headers.fields import HEADER_OF_FIELD
from verditer.rest.headers.groups import BlobAtTime, HasBlob
from verditer.rest.http.message import Response
from verditer.rest.operation import BodyKind, Op
from verditer.rest.operations.__main__ import FEATURES, NOTES, SUPPORT, TABLES, feature_of, operations_document, support_table
from verditer.rest.pipeline import Steps
from verditer.rest.stages import Decoded, IncomingRequest
from verditer.services.blob.answers import BlobRead, BlobState, BlockLists, PageRanges, Written
from verditer.web import api, control

ROOT = Path(__file__).parents[2]
SOURCES = sorted(path for folder in ("verditer", "tests", "examples") for path in (ROOT / folder).rglob("*.py"))
SOURCES += sorted((ROOT / "benchmarks").glob("*.py")) + sorted((ROOT / "benchmarks" / "cases").glob("*.py"))
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "changes").glob("*.md")])
ROWS = [(service, op) for service, operations in TABLES.items() for op in operations]
STALE = "run `make docs`"


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def text_of(name: str) -> str:
    return (ROOT / name).read_text()


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def found_in(paths: Iterable[Path], find: Callable[[Path], Collection[object]]) -> dict[str, Collection[object]]:
    """The files in which `find` finds something. One test for all files: a test for each would take longer than what it does."""
    return {name_of(path): found for path in paths if (found := find(path))}


def test_every_module_has_a_docstring() -> None:
    def first_sentence(path: Path) -> str:
        return (ast.get_docstring(tree_of(path)) or "").partition("\n\n")[0].rstrip()

    assert [name_of(path) for path in SOURCES if len(first_sentence(path)) <= 15] == []
    assert [name_of(path) for path in SOURCES if not first_sentence(path).endswith((".", "?", "`"))] == []


def test_there_are_no_notes_for_later_work() -> None:
    notes = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|XX" r"X)\b")
    assert found_in([*SOURCES, *DOCUMENTS], lambda path: notes.findall(path.read_text())) == {}


# --- operations ---------------------------------------------------------------------------------------------------------


def test_the_list_of_operations_is_what_the_tables_print() -> None:
    assert text_of("docs/operations.md") == operations_document(), STALE


def test_the_readme_shows_what_the_tables_say() -> None:
    shown = SUPPORT.search(text_of("README.md"))
    assert shown is not None
    assert shown.group() == support_table(), STALE


def test_the_features_of_the_readme_cover_every_operation_and_none_is_unused() -> None:
    assert {(service, feature_of(service, op.name)) for service, op in ROWS} == {
        (service, feature) for service in TABLES for feature, _ in FEATURES[service]
    }


def test_the_list_of_operations_calls_no_complete_service_incomplete() -> None:
    assert [service for service in NOTES if all(op.is_built for op in TABLES[service])] == []


@pytest.mark.parametrize(("service", "operations"), TABLES.items())
def test_no_row_hides_another(service: str, operations: Sequence[Op]) -> None:
    """The first row that matches handles a request, so a row with fewer requirements comes after those with more."""
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
def test_a_row_fills_the_struct_of_its_function(service: str, op: Op) -> None:
    """Every parameter of a row is a field of the struct, and every required field has a source: header, query, metadata, body."""
    assert op.request is not None
    request = op.request
    assert isinstance(request, type)
    assert issubclass(request, msgspec.Struct)
    fields = msgspec.structs.fields(request)
    refused = [param for param in op.takes.params if get_type_hints(param.parse).get("return") is NoReturn]
    given = {param.field for param in op.takes.params if param not in refused}
    given |= {name for name in ("metadata", "version") if getattr(op.takes, name)}
    assert given <= {field.name for field in fields}
    if op.body.kind is not BodyKind.DOCUMENT and not any(param.required for param in refused):
        assert {field.name for field in fields if field.required} <= given


ANSWERING = [(service, op) for service, op in ROWS if op.function is not None]


@pytest.mark.parametrize(("service", "op"), ANSWERING, ids=[f"{service}-{op.name}" for service, op in ANSWERING])
def test_the_answer_of_a_row_fits_the_result_of_its_function(service: str, op: Op) -> None:
    """Every path of a header exists on the result, and every function that reads the result accepts its type."""
    assert op.function is not None
    result, answer = get_type_hints(op.function)["return"], op.answer
    for header in answer.headers:
        if header.path:
            kind = attribute_type(result, header.path)
            shown = str | None if header.show in (None, str) else parameter_types(header.show)[0]
            values = [member for member in members_of(kind) if member is not type(None)]
            assert header.show is str or all(accepts(shown, value) for value in values), header.name
        else:
            assert accepts(parameter_types(header.get)[0], result), header.name
    for group in answer.groups:
        assert accepts(parameter_types(group)[0], result), group
    if answer.status_of is not None:
        assert accepts(parameter_types(answer.status_of)[0], result)
    if answer.body is not None:
        taken, stage = parameter_types(answer.body)
        assert accepts(taken, result)
        assert accepts(stage, Decoded)


def test_a_path_that_does_not_exist_or_may_lead_through_none_is_found() -> None:
    assert attribute_type(BlobState, "blob.size") is int
    for kind, path in ((BlobState, "blob.sise"), (BlockLists, "blob.size"), (Written, "etag.value")):
        with pytest.raises(AttributeError):
            attribute_type(kind, path)
    assert not accepts(BlobRead, BlobState)
    assert accepts(HasBlob, BlobState)
    assert not accepts(BlobAtTime, PageRanges)


def test_each_step_of_the_pipeline_takes_what_the_one_before_gives() -> None:
    steps = [get_args(step) for step in get_type_hints(Steps).values()]
    stages = [(taken, get_args(given)[0]) for [taken], given in steps]
    assert stages[0][0] is IncomingRequest
    assert stages[-1][1] is Response
    assert [given for _, given in stages[:-1]] == [taken for taken, _ in stages[1:]]


def test_the_map_lists_the_steps_of_the_pipeline() -> None:
    listed = re.findall(r"^   \| ([a-z ]+) \|", text_of("docs/MAP.md"), re.MULTILINE)
    assert [name.replace(" ", "_") for name in listed if name != "step"] == list(Steps._fields)


# --- errors ---------------------------------------------------------------------------------------------------------------


def test_every_error_can_be_caused() -> None:
    text = "\n".join(path.read_text() for path in SOURCES if name_of(path).startswith("verditer/"))
    used = set(re.findall(r"\bCode\.(\w+)", text))
    assert sorted(code.name for code in Code if code.name not in used) == []


def test_an_error_repeats_the_wire_code_of_another_only_explicitly() -> None:
    """A second error with the same wire code names that code; every other name is the wire code itself."""
    for code in Code:
        assert code.azure_code == code.name or code.azure_code in Code.__members__ or code.azure_code == "ConditionNotMet"


# --- no HTTP below rest -----------------------------------------------------------------------------------------------------

BELOW_REST = tuple(f"verditer/{package}/" for package in ("core", "services", "partition", "jobs", "smb", "serving"))
WITHOUT_STATUSES = ("verditer/core/", "verditer/services/", "verditer/jobs/")  # elsewhere these numbers mean other things
STATUS_NUMBERS = {int(status) for status in HTTPStatus if status >= 200} - {200, 300}  # these two are also ordinary numbers
HEADER_NAMES = {name.lower() for name in HEADER_OF_FIELD.values() if "-" in name} | {
    *("accept-ranges", "cache-control", "content-disposition", "content-encoding", "content-language", "content-length"),
    *("content-range", "content-type", "if-match", "if-none-match", "if-modified-since", "if-unmodified-since"),
    *("last-modified", "user-agent", "www-authenticate", "x-http-method"),
}


def test_nothing_below_rest_knows_http() -> None:
    """No header name, no status number and no HTTP library. `stream` is left out: an S3-compatible store is a server of HTTP."""
    assert found_in((path for path in SOURCES if name_of(path).startswith(BELOW_REST)), _http_in) == {}


def _http_in(path: Path) -> list[object]:
    found: list[object] = ["x-ms-"] if "x-ms-" in path.read_text().lower() else []
    numbers = STATUS_NUMBERS if name_of(path).startswith(WITHOUT_STATUSES) else set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.lower() in HEADER_NAMES:
            found.append(node.value)
        if isinstance(node, ast.Constant) and type(node.value) is int and node.value in numbers:
            found.append(node.value)
        found += [
            name for name in _imported(node) if name.partition(".")[0] in ("http", "urllib", "httpx", "aiohttp", "requests")
        ]
    return found


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module or ""] if isinstance(node, ast.ImportFrom) else []


# --- documents --------------------------------------------------------------------------------------------------------------


def test_the_contract_lists_the_tests_that_cite_it() -> None:
    assert text_of("docs/contract.md") == clauses.contract_document(), STALE


def test_every_clause_that_binds_has_a_test() -> None:
    cited = {number for kind, number in clauses.citations() if kind == "contract"}
    assert sorted(set(clauses.binding_clauses()) - cited) == []


def test_every_defect_of_another_server_has_a_test() -> None:
    cited = {number for kind, number in clauses.citations() if kind == "race"}
    assert sorted(set(clauses.RACES) - cited) == []


def test_only_clauses_and_races_that_exist_are_cited() -> None:
    known = {"contract": clauses.CLAUSES, "race": clauses.RACES}
    assert [(kind, number) for kind, number in clauses.citations() if number not in known[kind]] == []


def test_every_flag_is_documented() -> None:
    flags = {option for action in parser()._actions for option in action.option_strings}
    rows = re.findall(r"^\| (`-.*?) \|", text_of("docs/running.md").partition("\n## Accounts")[0], re.MULTILINE)
    assert {flag for row in rows for flag in re.findall(r"`(.+?)`", row)} == flags


def test_every_page_of_the_admin_port_is_documented() -> None:
    text = text_of("docs/admin.md")
    pages = control.PAGES | control.CONTROL | control.OAUTH | control.TOKENS
    assert [page for page in pages if f"`{' '.join(page)}`" not in text] == []


def test_every_request_of_the_explorer_is_documented() -> None:
    text = text_of("docs/explorer.md")
    assert [call for call in api.CALLS if f"`{' '.join(call)}" not in text] == []


def test_every_invariant_that_code_cites_exists() -> None:
    numbers = set(re.findall(r"^(\d+)\. \*\*", text_of("docs/INVARIANTS.md"), re.MULTILINE))
    cited = {number for path in SOURCES for number in re.findall(r"\binvariant (\d+)", path.read_text())}
    assert cited == numbers


def test_the_map_lists_every_package_and_file_once() -> None:
    listed = code_map.FILES.search(text_of("docs/MAP.md"))
    assert listed is not None
    assert listed.group() == code_map.file_list(), STALE


def test_the_glossary_lists_every_record_and_no_other() -> None:
    for path in (ROOT / "verditer" / "core" / "records").glob("[a-z]*.py"):
        importlib.import_module(f"verditer.core.records.{path.stem}")
    stored = {kind.__name__ for kind in _kinds_below(Record) if kind.__module__.startswith("verditer.") and kind.TABLE}
    listed = re.findall(r"^\| `(\w+)` \|", text_of("docs/GLOSSARY.md").partition("## Stored records")[2], re.MULTILINE)
    assert listed == sorted(stored)


def _kinds_below(kind: type[Record]) -> Iterator[type[Record]]:
    for child in kind.__subclasses__():
        yield child
        yield from _kinds_below(child)


def test_links_lead_somewhere() -> None:
    def broken(path: Path) -> list[str]:
        links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text())
        return [link for link in links if not (path.parent / link).exists()]

    assert found_in(DOCUMENTS, broken) == {}


def test_make_targets_in_documents_exist() -> None:
    targets = set(re.findall(r"^([a-z]+):", text_of("Makefile"), re.MULTILINE))
    named = re.compile(r"(?:`|^)make ([a-z]+)", re.MULTILINE)
    assert found_in(DOCUMENTS, lambda path: set(named.findall(path.read_text())) - targets) == {}


def test_files_that_documents_name_exist() -> None:
    folders = "verditer|tests|rest|core|services|serving|partition|stream|jobs|examples"

    def absent(path: Path) -> list[str]:
        named = re.findall(rf"`((?:{folders})/[\w/]+\.py)`", path.read_text())
        return [name for name in named if not (ROOT / name).exists() and not (ROOT / "verditer" / name).exists()]

    assert found_in(DOCUMENTS, absent) == {}


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


def test_the_changelog_lists_every_change() -> None:
    assert text_of("CHANGELOG.md") == changelog.changelog(), STALE


# --- the project --------------------------------------------------------------------------------------------------------------


def test_the_import_linter_covers_every_package() -> None:
    contracts = tomllib.loads(text_of("pyproject.toml"))["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    known = {package.strip() for layer in layers for package in layer.split("|")}
    packages = {f"verditer.{path.parent.name}" for path in (ROOT / "verditer").glob("*/__init__.py")}
    modules = {f"verditer.{path.stem}" for path in (ROOT / "verditer").glob("[a-z]*.py")}
    assert packages | modules == known
    for package in ("verditer.rest", "verditer.smb", "verditer.serving"):
        assert any(contract["type"] == "forbidden" and contract["source_modules"] == [package] for contract in contracts)


def test_the_import_layers_are_documented() -> None:
    contracts = tomllib.loads(text_of("pyproject.toml"))["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    assert "```text\n" + "".join(f"{layer.replace('verditer.', '')}\n" for layer in layers) + "```" in text_of("docs/HACKING.md")


def test_every_test_marker_is_documented() -> None:
    markers = tomllib.loads(text_of("pyproject.toml"))["tool"]["pytest"]["ini_options"].get("markers", [])
    names = [marker.partition(":")[0] for marker in markers]
    assert [name for name in names if f"-m {name}" not in text_of("docs/HACKING.md")] == []


def test_ci_runs_what_developers_run() -> None:
    assert re.findall(r"^make \w+$", text_of(".ci/run"), re.MULTILINE) == ["make lint", "make test", "make browser"]
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o111


def test_numbers_on_the_wire_are_written_in_ascii() -> None:
    r"""`\d` matches the digits of every script, and so does `int`."""
    assert [name_of(path) for path in SOURCES if name_of(path).startswith("verditer/") and r"\d" in path.read_text()] == []


RETIRED = (
    r"(?i)(?<![a-z])(?:departures?|travellers?|outlets?|keepers?|crews?|sieves?|stor(?:y|ies)|sift\w*|surely|whoever|(?<!_)as_told|(?<!_)as_it_is)(?![a-z])",
    r"\b(?:Landing|Ground|Keeping|Forgotten|Kept|Seat)\b(?=[(\[.`])",
)
"""A private vocabulary that the code once had. The last words are ordinary English unless they name a class."""

PLAIN = [
    path
    for path in (*SOURCES, *DOCUMENTS)
    if name_of(path).startswith(("verditer/", "tests/", "benchmarks/", "docs/", "README.md"))
]


def test_retired_words_do_not_come_back() -> None:
    """docs/contract.md quotes the names of tests."""

    def retired(path: Path) -> list[str]:
        return [word for pattern in RETIRED for word in re.findall(pattern, path.read_text())]

    assert found_in((path for path in PLAIN if path.name not in ("contract.md", "test_tidy.py")), retired) == {}


def test_no_code_branches_on_the_name_of_a_service() -> None:
    """What differs between services is a column of a row."""

    def branches(path: Path) -> list[int]:
        compared = [node for node in ast.walk(tree_of(path)) if isinstance(node, ast.Compare)]
        sides = [side for node in compared for side in (node.left, *node.comparators) if isinstance(side, ast.Constant)]
        return [side.lineno for side in sides if side.value in ("blob", "queue", "table", "file", "dfs")]

    assert found_in((path for path in SOURCES if name_of(path).startswith("verditer/")), branches) == {}


def test_no_private_attribute_of_asyncio_is_used() -> None:
    assert found_in(SOURCES, lambda path: re.findall(r"asyncio\._\w+", path.read_text())) == {}


def test_a_type_name_has_one_meaning() -> None:
    """A class or an alias. A type variable and a name with an underscore mean something in their own module only."""
    trees = [tree_of(path) for path in SOURCES if name_of(path).startswith("verditer/")]
    names = Counter(name for tree in trees for name in _types_in(tree) if re.fullmatch(r"[A-Z]\w*[a-z]\w*", name))
    assert [name for name, count in names.items() if count > 1] == []


def _types_in(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            yield node.name
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id


def test_decision_pages_that_code_cites_exist() -> None:
    cited = {page for path in SOURCES for page in re.findall(r"docs/decisions/[\w-]+\.md", path.read_text())}
    assert sorted(page for page in cited if not (ROOT / page).exists()) == []


def test_serving_names_no_header() -> None:
    """`serving` is for every front end, so it knows no protocol of one."""
    for path in (path for path in SOURCES if name_of(path).startswith("verditer/serving/")):
        assert re.findall(r"x-ms-|http/1", path.read_text()) == [], path
