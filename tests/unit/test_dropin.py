"""Other tools start this server in Azurite's place: their commands, the lines they wait for, health probes, clear mistakes."""

import http.client
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from azure.storage.blob import BlobServiceClient

from tests.rest.running import PATIENCE_SECONDS, Running, running
from tests.unit.test_cli import ANY_PORTS, read_start_message
from verditer import cli
from verditer.config import PORTS, Config
from verditer.flag_parser import COMMANDS as STORE_COMMANDS
from verditer.flag_parser import parser
from verditer.flags import config_from
from verditer.services.account import DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY
from verditer.serving.sockets import ListenAddress
from verditer.start_message import start_message, warnings

COMMANDS = Path(sys.executable).parent
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.endswith("_ACCOUNTS")}


@contextmanager
def started(*command: str, **environment: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process and its start message."""
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT | environment
    ) as process:
        try:
            yield process, read_start_message(process)
        finally:
            process.terminate()
            process.wait(PATIENCE_SECONDS)
            assert process.stderr is not None
            assert process.stderr.read().count("Traceback") == 0


def get(port: int, target: str, method: str = "GET", host: str = "127.0.0.1") -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_SECONDS)
    connection.request(method, target, headers={"Host": host})
    status = connection.getresponse().status
    connection.close()
    return status


ASPIRE = ("-l", "{folder}", "--blobHost", "0.0.0.0", "--queueHost", "0.0.0.0", "--tableHost", "0.0.0.0", "--skipApiVersionCheck")


def test_the_command_of_aspire_and_testcontainers_prints_what_they_wait_for(tmp_path: Path) -> None:
    arguments = [part.format(folder=tmp_path / "data") for part in ASPIRE]
    with started(str(COMMANDS / "azurite"), *arguments, *ANY_PORTS) as (_, message):
        for service in ("Blob", "Queue", "Table"):
            line = rf"^Azurite {service} service is successfully listening at http://0\.0\.0\.0:[0-9]+$"
            assert re.search(line, message, re.MULTILINE), message
        port = int(re.findall(r"Azurite Blob service is successfully listening at http://0.0.0.0:([0-9]+)", message)[0])
        assert get(port, "/health") == 200


@pytest.mark.parametrize("service", ["blob", "queue", "table"])
def test_one_service_is_started_by_its_own_command(tmp_path: Path, service: str) -> None:
    ports = ["--adminPort", "0", f"--{service}Port", "0"]
    with started(str(COMMANDS / f"azurite-{service}"), "-l", str(tmp_path), "--silent", *ports) as (_, message):
        assert re.findall(r"Azurite (\w+) service", message) == [service.capitalize()]
        assert re.findall(r"(\w+)Endpoint=", message) == [service.capitalize()]


def test_accounts_of_azurites_variable_are_served(tmp_path: Path) -> None:
    with started(str(COMMANDS / "azurite"), "-l", str(tmp_path), *ANY_PORTS, AZURITE_ACCOUNTS="mine:c2VjcmV0") as (_, message):
        endpoint = re.findall(r"BlobEndpoint=(\S+?);", message)[0]
        credential = {"account_name": "mine", "account_key": "c2VjcmV0"}
        BlobServiceClient(endpoint, credential=credential).create_container("box")


def test_all_flags_of_azurite_are_understood(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Config] = []

    async def run(config: Config, started: object) -> None:
        seen.append(config)

    monkeypatch.setattr(cli, "run", run)
    monkeypatch.setattr(cli, "_usual_workers", lambda config: 1)
    monkeypatch.setattr(cli, "start_logging", lambda debug: None)
    flags = (
        "--blobHost 0.0.0.0 --blobPort 1 --blobKeepAliveTimeout 5 --queueHost 0.0.0.0 --queuePort 2 --queueKeepAliveTimeout 6 "
    )
    flags += "--tableHost 0.0.0.0 --tablePort 3 --tableKeepAliveTimeout 7 --location x --silent --loose --skipApiVersionCheck "
    flags += "--disableProductStyleUrl --debug y --cert c.pem --key k.pem --pwd p --oauth basic --disableTelemetry"
    assert cli.main(flags.split()) == 0
    assert seen[0].keep_alive_seconds == {"blob": 5.0, "queue": 6.0, "table": 7.0}


def test_an_idle_connection_is_closed_after_the_time_that_was_asked_for(tmp_path: Path) -> None:
    with (
        running(tmp_path, in_memory=True, keep_alive_seconds={"blob": 0.2}) as server,
        socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_SECONDS) as connection,
    ):
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
        assert b" 200 " in connection.recv(4096)
        assert connection.recv(1) == b""


# --- mistakes ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        ("--blobprot 5", "there is no flag --blobprot; did you mean --blobPort?"),
        ("--locaton x", "did you mean --location?"),
        ("--qqqqqqqqqqqqqqqqqqqqqqqqqqq", "there is no flag --qqqqqqqqqqqqqqqqqqqqqqqqqqq ("),
        ("chek", "there is no command chek; did you mean check?"),
    ],
)
def test_a_wrong_flag_or_command_is_one_line_with_the_nearest_one(
    capfd: pytest.CaptureFixture[str], flags: str, says: str
) -> None:
    with pytest.raises(SystemExit) as end:
        cli.main(flags.split())
    assert end.value.code == 2
    error = capfd.readouterr().err
    assert says in error
    assert error.count("\n") == 1
    assert "--help" in error


@pytest.mark.parametrize("name", STORE_COMMANDS)
def test_help_names_every_command_and_each_has_its_own(capsys: pytest.CaptureFixture[str], name: str) -> None:
    for arguments, shows in (["--help"], f"\n  {name} "), ([name, "--help"], f"usage: verditer {name} "):
        with pytest.raises(SystemExit) as end:
            cli.main(arguments)
        assert end.value.code == 0
        assert shows in capsys.readouterr().out


def test_help_is_in_groups(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    shown = capsys.readouterr().out
    assert [
        each
        for each in ("data:", "ports:", "admin port:", "encryption:", "logs:", "bearer tokens:")
        if f"\n{each}\n" not in shown
    ] == []


def test_locations_that_cannot_be_meant_are_refused(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "__azurite_db_blob__.json").write_text("{}")
    for location, says in (
        ("", "--location is empty"),
        (str(tmp_path / "file"), "this is a file, and the data needs a folder"),
        (str(tmp_path / "old"), "has data of Azurite"),
        ("/proc/none", "cannot be used: no such file or directory"),
    ):
        assert cli.main([*ANY_PORTS, "--location", location]) == 1
        error = capfd.readouterr().err
        assert says in error
        assert error.startswith("verditer: ")
        assert "Errno" not in error


def test_data_of_azurite_in_the_working_directory_is_mentioned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Azurite keeps its data there by default, so a user who only changes the command would find an empty server."""
    monkeypatch.chdir(tmp_path)
    config_from(parser().parse_args([]))
    assert capsys.readouterr().err == ""
    (tmp_path / "__azurite_db_queue__.json").write_text("{}")
    config_from(parser().parse_args([]))
    assert "this folder has data of Azurite, which is not read; data goes to verditer-data" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "served"),
    [
        ("--services queue", {"queue", "admin"}),
        ("--services table,blob", {"table", "blob", "website", "admin"}),
        ("--services file", {"file", "smb", "admin"}),
        ("--services blob --smbPort 10445", {"blob", "website", "smb", "admin"}),
    ],
)
def test_a_service_brings_its_ports_and_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: str, served: set[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert config_from(parser().parse_args(flags.split())).ports.keys() == served


@pytest.mark.parametrize(
    ("flag", "says"),
    [
        ("--blobport 1", "there is no flag --blobport; did you mean --blobPort?"),
        ("--INMEMORY", "did you mean --inMemoryPersistence?"),
        ("--nonsense", "there is no flag --nonsense (verditer --help"),
        ("--blobPort many", "--blobPort 'many': this is not a number"),
        ("--drainSeconds soon", "--drainSeconds 'soon': this is not a number"),
    ],
)
def test_a_wrong_flag_is_named_with_the_one_that_was_meant(capsys: pytest.CaptureFixture[str], flag: str, says: str) -> None:
    with pytest.raises(SystemExit):
        parser().parse_args(flag.split())
    assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        ("--services disk", "the services are blob, queue, table, file"),
        ("--blobKeepAliveTimeout 0", "more than 0"),
        ("--tls-names azurite", "needs --development-tls"),
        ("--adminToken short", "at least 16"),
        ("--adminToken 'a token with spaces'", "at least 16"),
    ],
)
def test_values_that_make_no_sense_are_refused(capfd: pytest.CaptureFixture[str], tmp_path: Path, flags: str, says: str) -> None:
    name, _, value = flags.partition(" ")
    assert cli.main(["--location", str(tmp_path), name, value.strip("'")]) == 1
    assert says in capfd.readouterr().err


INTERRUPTED_AT_AN_IMPORT = """
import os, runpy, signal, sys
module = sys.argv.pop(1)
def interrupt(event, arguments):
    if event == "import" and arguments[0] == module:
        os.kill(os.getpid(), signal.SIGINT)
sys.addaudithook(interrupt)
runpy.run_module("verditer", run_name="__main__", alter_sys=True)
"""


IMPORTED = ["verditer.entry", "verditer.cli", "uvloop", "verditer.services", "ctypes", "verditer.smb.server"]


@pytest.mark.parametrize("module", IMPORTED)
def test_an_interrupt_during_the_start_is_silent(tmp_path: Path, module: str) -> None:
    """The interrupt arrives when the module is imported, the last one while the server opens its ports."""
    command = [sys.executable, "-c", INTERRUPTED_AT_AN_IMPORT, module, "-l", str(tmp_path), "--workers", "1", *ANY_PORTS]
    ended = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, timeout=PATIENCE_SECONDS)
    assert (ended.returncode, ended.stderr) == (0, "")


AS_A_SCRIPT_OF_PIP = """
import os, signal, sys
sys.addaudithook(lambda event, seen: os.kill(os.getpid(), signal.SIGINT) if event == "import" and seen[0] == "typing" else None)
from verditer.entry import command
command()
"""


def test_an_interrupt_is_handled_before_anything_else_is_imported(tmp_path: Path) -> None:
    command = [sys.executable, "-c", AS_A_SCRIPT_OF_PIP, "-l", str(tmp_path), "--workers", "1", *ANY_PORTS]
    ended = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, timeout=PATIENCE_SECONDS)
    assert (ended.returncode, ended.stderr) == (0, "")


# --- addresses --------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("dropin"), in_memory=True) as server:
        yield server


@pytest.mark.parametrize("host", ["storage.default.svc.cluster.local:10000", "DESKTOP-1.local", "127.0.0.1:1", "azurite"])
def test_a_machine_with_dots_in_its_name_is_addressed_by_path(server: Running, host: str) -> None:
    container = BlobServiceClient.from_connection_string(server.connection_string).get_container_client("public")
    if not container.exists():
        container.create_container(public_access="blob")
    container.upload_blob("a", b"1", overwrite=True)
    assert get(server.port, f"/{DEVELOPMENT_ACCOUNT}/public/a", host=host) == 200


def test_an_account_that_is_not_found_is_named_with_the_place_it_was_looked_for(server: Running) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_SECONDS)
    for host, target, says in (
        ("storage.default.svc", "/nobody/box", b"'storage', named in the host name; --disableProductStyleUrl"),
        ("127.0.0.1", "/nobody/box", b"'nobody', named in the path"),
    ):
        connection.request("GET", target, headers={"Host": host})
        response = connection.getresponse()
        assert response.status == 404
        assert says in response.read()
    connection.close()


@pytest.mark.parametrize("port", [row.name for row in PORTS if row.is_storage or row.name == "admin"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("target", ["/health", "/healthz"])
def test_health_is_answered_on_every_storage_port_and_the_admin_port(
    server: Running, port: str, method: str, target: str
) -> None:
    assert get(server.app.servers[port].port, target, method) == 200


def test_an_account_called_health_keeps_its_meaning(tmp_path: Path) -> None:
    from verditer.services.account import parse_accounts

    with running(tmp_path, in_memory=True, accounts=parse_accounts(f"health:{DEVELOPMENT_KEY}")) as server:
        assert get(server.port, "/health") != 200
        assert get(server.port, "/healthz") == 200


def test_a_public_key_that_other_machines_can_use_is_warned_about(tmp_path: Path) -> None:
    open_port = {row.name: ListenAddress(port=0, host="0.0.0.0" if row.name == "blob" else "127.0.0.1") for row in PORTS}
    with running(tmp_path, in_memory=True) as server:
        assert warnings(server.app) == []
        config = server.app.config
        server.app.config = Config(in_memory=True, ports=open_port)
        (warning,) = warnings(server.app)
        assert "other machines may reach the blob port" in warning
        assert "http://0.0.0.0:" in start_message(server.app)
        server.app.config = config


def test_the_log_has_the_time_until_the_last_byte(tmp_path: Path) -> None:
    """The client reads the second half of the body only when the clock of the test says that time has passed."""
    with running(tmp_path, in_memory=True) as server:
        client = BlobServiceClient.from_connection_string(server.connection_string)
        client.create_container("box", public_access="blob").upload_blob("large", bytes(32 << 20))
        server.app.feed.newer_than({})
        with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_SECONDS) as connection:
            connection.sendall(f"GET /{DEVELOPMENT_ACCOUNT}/box/large HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode())
            assert connection.recv(1000)
            before = time.monotonic()
            while time.monotonic() - before < 0.3:
                connection.recv(10)
            while connection.recv(1 << 20):
                pass
        (entry,) = [each for each in server.app.feed.newer_than({}) if each.request.operation == "GetBlob"]
        assert entry.request.seconds >= 0.3
        assert entry.request.bytes_out == 32 << 20
