"""The command line: flags become a Config, mistakes become a sentence, and the start message holds what a client needs."""

import asyncio
import base64
import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from azure.storage.blob import BlobServiceClient

from tests.rest.running import running
from verditer import __version__, cli
from verditer.app import App
from verditer.config import PORTS, Config, OAuth, default_ports
from verditer.rest.services import SERVICES
from verditer.services.account import DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY
from verditer.serving.sockets import ListenAddress
from verditer.start_message import describe_store, start_message

ANY_PORTS = tuple(part for row in PORTS for part in (f"--{row.name}Port", "0"))
SECRET = base64.b64encode(b"a key of one's own").decode()
OTHER = base64.b64encode(b"its second key").decode()
Flags = Callable[..., Config]


def at(**ports: ListenAddress) -> dict[str, Any]:
    return {"ports": default_ports() | ports}


@pytest.fixture(autouse=True)
def _no_accounts_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("VERDITER_ACCOUNTS", "AZURITE_ACCOUNTS"):
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture
def config_of(monkeypatch: pytest.MonkeyPatch) -> Flags:
    """What the server would be started with."""
    seen: list[Config] = []

    async def run(config: Config, started: Callable[[App], None]) -> None:
        seen.append(config)

    monkeypatch.setattr(cli, "run", run)
    monkeypatch.setattr(cli, "start_logging", lambda debug_file: None)
    monkeypatch.setattr(cli, "_usual_workers", lambda config: 1)

    def parse(*flags: str) -> Config:
        assert cli.main(list(flags)) == 0
        return seen.pop()

    return parse


def test_without_arguments_it_is_azurites_ports_and_account(config_of: Flags) -> None:
    assert config_of() == Config()
    assert {name: address.port for name, address in Config().ports.items()} == {
        "blob": 10000,
        "queue": 10001,
        "table": 10002,
        "file": 10003,
        "website": 10008,
        "smb": 10445,
        "admin": 10009,
    }
    assert list(Config().accounts) == [DEVELOPMENT_ACCOUNT]


@pytest.mark.parametrize(
    ("flags", "settings"),
    [
        ("--location data", {"location": Path("data")}),
        ("-l data", {"location": Path("data")}),
        ("--database postgresql://me@there/store", {"database": "postgresql://me@there/store"}),
        ("--inMemoryPersistence", {"in_memory": True}),
        ("--inMemoryPersistence --extentMemoryLimit 1.5", {"in_memory": True, "memory_limit": 1_572_864}),
        ("--inMemoryPersistence --extentMemoryLimit -1", {"in_memory": True, "memory_limit": None}),
        ("--blobHost 0.0.0.0 --blobPort 7", at(blob=ListenAddress(host="0.0.0.0", port=7))),
        ("--queuePort 0", at(queue=ListenAddress(port=0))),
        ("--tableHost ::1", at(table=ListenAddress(host="::1", port=10002))),
        ("--filePort 9", at(file=ListenAddress(port=9))),
        ("--adminPort 10", at(admin=ListenAddress(port=10))),
        ("--cert a.pem --key a.key --pwd word", {"cert": "a.pem", "key": "a.key", "password": "word"}),
        ("--development-tls", {"development_tls": True}),
        ("--development-tls --tls-names azurite,::1", {"development_tls": True, "tls_names": ("azurite", "::1")}),
        ("--silent", {"silent": True}),
        ("-s", {"silent": True}),
        ("--debug log.txt", {"debug": Path("log.txt")}),
        ("-d log.txt", {"debug": Path("log.txt")}),
        ("--log-format json", {"log_format": "json"}),
        ("--test-control", {"test_control": True}),
        ("--disableProductStyleUrl", {"product_style": False}),
        ("--oauth basic", {"oauth": OAuth(mode="basic")}),
        (
            "--oauth-issuer a --oauth-issuer b --oauth-jwks k --oauth-audience c --oauth-allow-http",
            {"oauth": OAuth(mode="issuer", issuers=("a", "b"), jwks="k", audiences=("c",), allow_http=True)},
        ),
        ("--loose --skipApiVersionCheck --disableTelemetry", {}),
        ("-L", {}),
    ],
)
def test_a_flag_sets_what_it_names_and_nothing_else(config_of: Flags, flags: str, settings: dict[str, Any]) -> None:
    assert config_of(*flags.split()) == Config(**settings)


def test_azurites_flags_are_taken_all_at_once(config_of: Flags) -> None:
    config = config_of(
        *("--silent", "--location", "x", "--debug", "y", "--loose", "--skipApiVersionCheck", "--disableProductStyleUrl"),
        *("--blobHost", "0.0.0.0", "--blobPort", "1", "--queueHost", "0.0.0.0", "--queuePort", "2"),
        *("--tableHost", "0.0.0.0", "--tablePort", "3", "--cert", "c.pfx", "--pwd", "p", "--disableTelemetry"),
    )
    assert [config.ports[name].host for name in ("blob", "queue", "table")] == ["0.0.0.0"] * 3


@pytest.mark.parametrize(
    ("flags", "status", "says"),
    [
        ("--nonsense", 2, "--nonsense"),
        ("--blobPort many", 2, "--blobPort"),
        ("--log-format xml", 2, "--log-format"),
        ("--extentMemoryLimit lots", 2, "--extentMemoryLimit"),
        ("--location", 2, "--location"),
        ("--blobPort 65536", 1, "--blobPort 65536"),
        ("--queuePort -1", 1, "--queuePort -1"),
        ("--oauth everybody", 2, "--oauth"),
        ("--oauth-jwks keys.json", 1, "--oauth-issuer"),
        ("--oauth-issuer https://issuer", 1, "--oauth-jwks"),
        ("--oauth development --oauth-issuer https://issuer", 1, "exclude each other"),
        ("--oauth basic --blobHost 0.0.0.0", 1, "TLS"),
        ("--extentMemoryLimit 5", 1, "--inMemoryPersistence"),
        ("--inMemoryPersistence --extentMemoryLimit -5", 1, "--extentMemoryLimit -5: a number of megabytes"),
        ("--inMemoryPersistence --extentMemoryLimit inf", 1, "--extentMemoryLimit inf: a number of megabytes"),
        ("--inMemoryPersistence --extentMemoryLimit nan", 1, "--extentMemoryLimit nan: a number of megabytes"),
        ("--key a.key", 1, "--cert"),
        ("--pwd word", 1, "--cert"),
        ("--development-tls --tls-names azurite,a_b!", 1, "--tls-names a_b!: this is no host name and no IP address"),
        ("--database postgresql://h/d --inMemoryPersistence", 1, "exclude each other"),
        ("--database sesame", 1, "postgresql://"),
        ("--workers 0", 1, "--workers 0"),
        ("--workers 65", 1, "from 1 to 64"),
        ("--workers two", 2, "--workers"),
        ("--debug no-such-folder/log.txt", 1, "--debug no-such-folder/log.txt: the file cannot be written"),
        ("--workers 2 --inMemoryPersistence", 1, "--inMemoryPersistence"),
        ("--cert no-such-file.pem", 1, "no-such-file.pem"),
        ("--config no-such-file.toml", 1, "no-such-file.toml cannot be read: no such file or directory"),
        ("--blobHost 192.0.2.1", 1, "cannot assign requested address; --blobHost chooses another address"),
        ("--blobHost no-such-name.invalid", 1, "--blobHost chooses another address"),
        ("--database postgresql://127.0.0.1:1/none", 1, "port 1"),
    ],
)
def test_a_mistake_ends_with_a_status_and_says_what_is_wrong(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, flags: str, status: int, says: str
) -> None:
    def started(app: App) -> str:
        raise AssertionError("it started")

    monkeypatch.setattr(cli, "start_message", started)
    arguments = [*ANY_PORTS, "--location", str(tmp_path), *flags.split()]
    try:
        ended = cli.main(arguments)
    except SystemExit as end:
        ended = int(end.code or 0)
    error = capfd.readouterr().err
    assert ended == status
    assert says in error
    assert "Traceback" not in error
    assert "Errno" not in error


def test_a_port_that_is_taken_is_a_mistake_too(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert cli.main([*ANY_PORTS, "--location", str(tmp_path), "--blobPort", port]) == 1
    assert port in capfd.readouterr().err


def test_two_servers_cannot_share_a_folder(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with running(tmp_path):
        assert cli.main([*ANY_PORTS, "--location", str(tmp_path)]) == 1
    assert str(tmp_path) in capfd.readouterr().err


def test_the_version_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        cli.main(["--version"])
    assert end.value.code == 0
    assert capsys.readouterr().out == f"verditer {__version__}\n"


@pytest.mark.parametrize("variable", ["VERDITER_ACCOUNTS", "AZURITE_ACCOUNTS"])
def test_accounts_come_from_the_environment(config_of: Flags, monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv(variable, f"one:{SECRET}; two:{SECRET}:{OTHER};")
    accounts = config_of().accounts
    assert {name: account.keys for name, account in accounts.items()} == {
        "one": (b"a key of one's own",),
        "two": (b"a key of one's own", b"its second key"),
    }


def test_keys_that_are_not_strict_base64_are_read_as_azurite_reads_them(
    config_of: Flags, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("AZURITE_ACCOUNTS", "one:-_-_YQ;two:+/+/YQ==")
    accounts = config_of().accounts
    assert accounts["one"].keys == accounts["two"].keys == (bytes.fromhex("fbffbf61"),)
    assert [record.getMessage() for record in caplog.records] == [
        "account 'one': a key is not strict base64; it is read leniently"
    ]


def test_our_own_variable_comes_first(config_of: Flags, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURITE_ACCOUNTS", f"theirs:{SECRET}")
    monkeypatch.setenv("VERDITER_ACCOUNTS", f"ours:{SECRET}")
    assert list(config_of().accounts) == ["ours"]


@pytest.mark.parametrize(
    "text",
    ["one", "one:", f":{SECRET}", f"one:{SECRET}:{OTHER}:{OTHER}", "one:not/base64!", f"one:{SECRET}:", ";", "one:schlüssel"],
)
def test_accounts_that_cannot_be_read_are_a_mistake_that_shows_no_key(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("VERDITER_ACCOUNTS", text)
    assert cli.main([]) == 1
    error = capsys.readouterr().err
    assert error.startswith("verditer: VERDITER_ACCOUNTS")
    assert not any(key in error for key in (SECRET, OTHER, "not/base64!", "schlüssel"))


def test_the_start_message_has_a_connection_string_that_works(tmp_path: Path) -> None:
    with running(tmp_path, in_memory=True) as server:
        message = start_message(server.app)
        assert message.startswith(f"Verditer {__version__} is serving from memory")
        string = next(line for line in message.splitlines() if line.startswith("DefaultEndpointsProtocol=http;"))
        assert f"AccountKey={DEVELOPMENT_KEY};" in string
        with BlobServiceClient.from_connection_string(string, retry_total=0) as client:
            client.create_container("hello")
            assert [container.name for container in client.list_containers()] == ["hello"]


def test_the_start_message_names_every_port(tmp_path: Path) -> None:
    with running(tmp_path, in_memory=True) as server:
        message = start_message(server.app)
        shown = {name.lower(): port for name, port in re.findall(r"^  (\w+) +[a-z]+://[^ ]*:(\d+)$", message, re.MULTILINE)}
        assert shown == {name: str(each.port) for name, each in server.app.servers.items()}


def test_the_start_message_says_how_the_development_certificate_is_trusted(tmp_path: Path) -> None:
    with running(tmp_path, development_tls=True) as server:
        lines = start_message(server.app).splitlines()
        path = tmp_path / "tls" / "localhost.crt"
        assert path.exists()
        assert f"Certificate {path}" in lines
        assert f"  Python and curl trust it with: export SSL_CERT_FILE={path}" in lines


@pytest.mark.parametrize(
    "database",
    [
        "postgresql://me:hidden@there:5432/store",
        "host=there dbname=store password=hidden",
        "postgresql://there/store?password=hidden",
    ],
)
def test_the_start_message_shows_the_database_and_not_its_password(database: str) -> None:
    shown = describe_store(Config(database=database))
    assert "store at there" in shown
    assert "hidden" not in shown


@pytest.mark.parametrize("name", ["mine", DEVELOPMENT_ACCOUNT])
def test_the_program_starts_hides_keys_of_ones_own_and_stops_when_asked(tmp_path: Path, name: str) -> None:
    environment = os.environ | {"VERDITER_ACCOUNTS": f"{name}:{SECRET}:{OTHER}"}
    command = [sys.executable, "-m", "verditer", *ANY_PORTS, "--location", str(tmp_path)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        message = ""
        while "AccountKey=" not in message:
            line = process.stdout.readline()
            assert line, f"it ended early: {message}"
            message += line
        process.send_signal(signal.SIGTERM)
        message += process.stdout.read()
    assert process.returncode == 0
    assert f"AccountName={name};AccountKey=<its key>;" in message
    assert SECRET not in message
    assert OTHER not in message


# --- starting and stopping --------------------------------------------------------------------------------------------------

MODES = [["--inMemoryPersistence"], ["--workers", "1"], ["--workers", "2"]]
PATIENCE_SECONDS = 60.0  # a process that takes longer to end hangs


def command(location: Path, *flags: str) -> list[str]:
    return [sys.executable, "-m", "verditer", *ANY_PORTS, "--location", str(location), *flags]


@pytest.mark.parametrize("mode", MODES, ids=" ".join)
def test_a_start_message_that_cannot_be_printed_ends_the_process_with_a_reason(tmp_path: Path, mode: list[str]) -> None:
    with open("/dev/full", "w") as full:
        ended = subprocess.run(
            command(tmp_path, *mode), stdout=full, stderr=subprocess.PIPE, text=True, timeout=PATIENCE_SECONDS, check=False
        )
    assert ended.returncode == 1
    assert "verditer: the start message cannot be printed: No space left on device" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("mode", MODES, ids=" ".join)
def test_a_start_message_that_nobody_reads_ends_the_process(tmp_path: Path, mode: list[str]) -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        ended = subprocess.run(
            command(tmp_path, *mode), stdout=write, stderr=subprocess.PIPE, text=True, timeout=PATIENCE_SECONDS, check=False
        )
    finally:
        os.close(write)
    assert ended.returncode == 1
    assert "verditer: the start message cannot be printed: Broken pipe" in ended.stderr


@pytest.mark.parametrize("mode", MODES, ids=" ".join)
def test_a_request_log_that_nobody_reads_any_more_leaves_the_server_running(tmp_path: Path, mode: list[str]) -> None:
    with subprocess.Popen(command(tmp_path, *mode), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        line = ""
        while "Blob" not in line:
            line = process.stdout.readline()
        port = int(line.rpartition(":")[2])
        while "AccountKey=" not in line:
            line = process.stdout.readline()
        process.stdout.close()
        assert _get_status(port) == 404
        assert "the request log ends here" in process.stderr.readline()
        assert _get_status(port) == 404
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_SECONDS) == 0
        assert "Traceback" not in process.stderr.read()


def _get_status(port: int) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_SECONDS)
    connection.request("GET", "/nobody/container/blob")
    status = connection.getresponse().status
    connection.close()
    return status


@pytest.mark.parametrize("mode", MODES, ids=" ".join)
@pytest.mark.parametrize("pause_seconds", [0.0, 0.002, 0.01])
def test_two_interrupts_in_quick_succession_end_the_process(tmp_path: Path, mode: list[str], pause_seconds: float) -> None:
    with subprocess.Popen(command(tmp_path, *mode), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        for _ in range(3):
            process.send_signal(signal.SIGINT)
            time.sleep(pause_seconds)
        try:
            _, errors = process.communicate(timeout=PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    assert process.returncode == 0
    assert "Traceback" not in errors


@pytest.mark.parametrize("steps", range(0, 40, 3))
def test_cancelling_a_stop_closes_everything_all_the_same(steps: int) -> None:
    """However often and whenever a signal cancels it."""

    async def stop_cancelled() -> None:
        app = App(Config(in_memory=True, silent=True, ports={row.name: ListenAddress(port=0) for row in PORTS}))
        await app.start()
        stopping = asyncio.ensure_future(app.stop())
        for _ in range(steps):
            await asyncio.sleep(0)
            stopping.cancel()
        await asyncio.wait_for(stopping, PATIENCE_SECONDS)

    before = _own_threads()
    asyncio.run(stop_cancelled())
    assert _own_threads() <= before


def _own_threads() -> set[threading.Thread]:
    """The threads that would keep this process alive. Those of servers that other tests share are daemons."""
    return {thread for thread in threading.enumerate() if not thread.daemon}


# --- ports ------------------------------------------------------------------------------------------------------------------


def read_start_message(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    assert process.stderr is not None
    message = ""
    while "AccountKey=" not in message:
        line = process.stdout.readline()
        assert line, process.stderr.read()
        message += line
    return message


@pytest.mark.parametrize("mode", MODES, ids=" ".join)
def test_a_taken_port_that_was_not_asked_for_is_replaced_by_a_free_one(
    tmp_path: Path, mode: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As for a second instance that is started with Azurite's three port flags alone."""
    with socket.create_server(("127.0.0.1", 0)) as file, socket.create_server(("127.0.0.1", 0)) as admin:
        taken = {"file": file.getsockname()[1], "admin": admin.getsockname()[1]}
        start = (
            "import sys, msgspec\nfrom verditer import cli, config, flags\n"
            f"taken = {taken}\n"
            "config.PORTS = flags.PORTS = tuple(\n"
            "    msgspec.structs.replace(row, port=taken.get(row.name, row.port)) for row in config.PORTS)\n"
            "sys.exit(cli.main(sys.argv[1:]))"
        )
        three = ("--blobPort", "0", "--queuePort", "0", "--tablePort", "0", "--location", str(tmp_path))
        with subprocess.Popen(
            [sys.executable, "-c", start, *three, *mode], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            message = read_start_message(process)
            process.send_signal(signal.SIGTERM)
            _, errors = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 0
    for name, port in taken.items():
        assert f"port {port} is in use, so the {name} port is " in errors
        assert re.search(rf"{name.capitalize()} +http://127.0.0.1:(?!{port}\n)[0-9]+\n", message)


def test_a_port_that_was_asked_for_is_never_replaced(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert cli.main([*ANY_PORTS, "--location", str(tmp_path), "--adminPort", port]) == 1
    error = capfd.readouterr().err
    assert f"cannot listen on 127.0.0.1 port {port} (admin): address already in use; --adminPort chooses another port" in error


def test_every_service_has_a_port() -> None:
    assert {service.name for service in SERVICES} == {row.name for row in PORTS if row.is_storage}
