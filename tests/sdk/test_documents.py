"""Every snippet and command in the documents runs, or is listed with the reason in `tests/docs_snippets.py`."""

import io
import os
import re
import shutil
import subprocess
import sys
import tomllib
import unittest
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from azure.storage.blob import BlobServiceClient

from tests.docs_snippets import NOT_RUN, ROOT, RUN, Snippet, snippets
from tests.rest.running import ADMIN_TOKEN, Running, running
from verditer.config import SettingsFile
from verditer.services.account import DEVELOPMENT_ACCOUNT as ACCOUNT

USUAL = {"blob": 10000, "queue": 10001, "table": 10002, "file": 10003, "admin": 10009}
START = """#!{python}
import signal, subprocess, sys, os
name, arguments = os.path.basename(sys.argv[0]), sys.argv[1:]
flags = [f"--{{port}}Port" for port in ("blob", "queue", "table", "file", "admin")]
free = [part for flag in flags if flag not in arguments for part in (flag, "0")]
process = subprocess.Popen([{folder!r} + "/" + name, *arguments, *free], stdout=subprocess.PIPE, text=True)
for line in process.stdout:
    if "AccountKey=" in line:
        process.send_signal(signal.SIGTERM)
sys.exit(process.wait())
"""


def test_every_snippet_runs_or_is_listed_with_the_reason() -> None:
    assert {str(each) for each in snippets() if each.language not in RUN} == set(NOT_RUN)


def test_commands_that_are_not_run_name_targets_flags_and_extras_that_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    text = "".join([each.text for each in snippets("console")])
    for target in re.findall(r"^make (\w+)", text, re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    for command in re.findall(r"^(?:\S*/)?verditer (.*(?:\\\n.*)*)", text, re.MULTILINE):
        assert _flags(f" {command}") <= _known_flags(), command
    for named in re.findall(r"pip install '\.\[([\w,]+)\]'", text):
        assert set(named.split(",")) <= set(extras), named
    for path in re.findall(r"(?:--file |cp )(\S+)", text):
        assert (ROOT / path).is_file(), path


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd is not installed")
def test_the_unit_is_one_that_systemd_accepts(tmp_path: Path) -> None:
    unit = tmp_path / "verditer.service"
    unit.write_text((ROOT / "packaging/verditer.service").read_text().replace("/opt/verditer/bin/verditer", "/bin/true"))
    ended = subprocess.run(["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("documents"), in_memory=True) as server:
        yield server


def with_ports(text: str, server: Running) -> str:
    """Where a document names a usual port, the server of the test has another."""
    for name, port in USUAL.items():
        text = text.replace(f"127.0.0.1:{port}", f"127.0.0.1:{server.app.servers[name].port}")
    return text


@pytest.mark.parametrize("snippet", [each for each in snippets("python") if each.page != "docs/testing.md"], ids=str)
def test_a_program_runs_twice(server: Running, snippet: Snippet) -> None:
    names: dict[str, Any] = {}
    for _ in range(2):
        exec(compile(with_ports(snippet.text, server), str(snippet), "exec"), names)
    if "copy_all" in names:
        client = BlobServiceClient.from_connection_string(server.connection_string)
        client.get_container_client("copied").create_container()
        client.get_blob_client("copied", "a").upload_blob(b"1")
        assert names["copy_all"](client, client) >= 1


def test_the_pytest_example_passes(tmp_path: Path) -> None:
    first = next(each for each in snippets("python") if each.page == "docs/testing.md")
    (tmp_path / "test_example.py").write_text(first.text)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "2 passed" in ended.stdout, ended.stdout


def test_the_unittest_example_passes() -> None:
    second = [each for each in snippets("python") if each.page == "docs/testing.md"][1]
    names: dict[str, Any] = {"__name__": "example"}
    exec(compile(second.text, str(second), "exec"), names)
    result = unittest.TextTestRunner(stream=io.StringIO()).run(unittest.defaultTestLoader.loadTestsFromTestCase(names["Jobs"]))
    assert (result.testsRun, result.wasSuccessful()) == (1, True)


@pytest.mark.parametrize("snippet", snippets("sh"), ids=str)
def test_a_command_runs(server: Running, snippet: Snippet, tmp_path: Path) -> None:
    """A command that starts a server is stopped when the server is ready."""
    commands = tmp_path / "commands"
    commands.mkdir()
    for name in ("verditer", "azurite"):
        (commands / name).write_text(START.format(python=sys.executable, folder=str(Path(sys.executable).parent)))
        (commands / name).chmod(0o755)
    environment = os.environ | {"PATH": f"{commands}:{os.environ['PATH']}", "TOKEN": ADMIN_TOKEN}
    for line in with_ports(snippet.text, server).splitlines():
        line = line.replace("curl -s ", "curl -s --fail-with-body ").replace('"seconds": 6', '"seconds": 0.6')
        ended = subprocess.run(["bash", "-ec", line], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, f"{line}\n{ended.stdout}{ended.stderr}"


@pytest.mark.parametrize("snippet", snippets("toml"), ids=str)
def test_a_settings_file_is_understood(snippet: Snippet) -> None:
    assert msgspec.convert(tomllib.loads(snippet.text), SettingsFile) != SettingsFile()


def test_the_seed_of_the_settings_page_is_understood() -> None:
    seeds = [each for each in snippets("toml") if "[seed." in each.text]
    assert seeds
    for snippet in seeds:
        file = msgspec.convert(tomllib.loads(snippet.text), SettingsFile)
        assert file.seed[ACCOUNT].containers


@pytest.mark.parametrize("snippet", snippets("yaml"), ids=str)
def test_a_recipe_is_yaml_and_its_probes_exist(server: Running, snippet: Snippet) -> None:
    document = yaml.safe_load(snippet.text)
    assert document
    for path in re.findall(r"path: (/health[/a-z]*)", snippet.text):
        ended = subprocess.run(
            ["curl", "-s", "--fail", f"http://127.0.0.1:{server.admin_port}{path}"], capture_output=True, check=False
        )
        assert ended.returncode == 0
    for command in re.findall(r"(verditer --.*?)(?: &)?$", snippet.text, re.MULTILINE):
        assert _flags(command) <= _known_flags()


def test_the_manifest_fits_the_image_and_itself() -> None:
    manifest = next(yaml.safe_load(each.text) for each in snippets("yaml") if "kind: StatefulSet" in each.text)
    image = (ROOT / "Containerfile").read_text()
    spec, pod = manifest["spec"], manifest["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert (manifest["apiVersion"], manifest["kind"]) == ("apps/v1", "StatefulSet")
    assert spec["selector"]["matchLabels"].items() <= spec["template"]["metadata"]["labels"].items()
    assert [each["name"] for each in container["volumeMounts"]] == [
        each["metadata"]["name"] for each in spec["volumeClaimTemplates"]
    ]
    assert f"VOLUME {container['volumeMounts'][0]['mountPath']}\n" in image
    assert f"USER {pod['securityContext']['runAsUser']}:" in image
    probed = {container[probe]["httpGet"]["port"] for probe in ("livenessProbe", "readinessProbe")}
    exposed = re.findall(r"\d+", re.findall(r"^EXPOSE (.*)$", image, re.MULTILINE)[0])
    assert {str(port) for port in probed | {each["containerPort"] for each in container["ports"]}} <= set(exposed)


def _flags(command: str) -> set[str]:
    return set(re.findall(r"(?<=\s)--[\w-]+", command))


def _known_flags() -> set[str]:
    from verditer.flag_parser import parser

    return {option for action in parser()._actions for option in action.option_strings}


@pytest.mark.parametrize("name", ["compose.yaml", "compose.cluster.yaml"])
def test_compose_files_start_the_server_with_flags_that_exist(name: str) -> None:
    services = yaml.safe_load((ROOT / name).read_text())["services"]
    ours = [each for each in services.values() if each["image"] == "verditer"]
    assert ours
    for service in ours:
        flags = {part for part in service.get("command", []) if part.startswith("--")}
        assert flags <= _known_flags()


def test_the_variables_of_recipes_are_read_by_the_server() -> None:
    source = "".join([path.read_text() for path in (ROOT / "verditer").rglob("*.py")])
    recipes = [(ROOT / name).read_text() for name in ("compose.yaml", "compose.cluster.yaml", "Containerfile")]
    for name in set(re.findall(r"\bVERDITER_[A-Z_]+", "".join([*recipes, *(each.text for each in snippets("yaml", "console"))]))):
        assert f'"{name}"' in source, name


def test_the_image_and_the_unit_start_the_server_with_flags_that_exist() -> None:
    for text in ((ROOT / "Containerfile").read_text().rpartition("CMD")[2], (ROOT / "packaging/verditer.service").read_text()):
        flags = set(re.findall(r"(?<=[\s\"])--[A-Za-z]+(?=[\s\"])", text))
        assert flags
        assert flags <= _known_flags()


def test_the_connection_string_of_the_page_is_the_one_that_is_printed(server: Running) -> None:
    from verditer.start_message import start_message

    text = next(each for each in snippets("text") if each.page == "docs/connection-strings.md").text.strip()
    assert with_ports(text, server) in start_message(server.app)
