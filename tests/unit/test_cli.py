"""The command line: flags become a Config, mistakes become a sentence, and the start message holds what a client needs."""

import base64
import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from azure.storage.blob import BlobServiceClient

from tests.rest.running import running
from verditer import __version__, cli
from verditer.app import App
from verditer.config import Config, Listen, OAuth
from verditer.services.account import DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY

ANYWHERE = tuple(part for name in ("blob", "queue", "table", "file", "admin") for part in (f"--{name}Port", "0"))
SECRET = base64.b64encode(b"a key of one's own").decode()
OTHER = base64.b64encode(b"its second key").decode()
Flags = Callable[..., Config]


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
    monkeypatch.setattr(cli, "_start_logging", lambda config: None)
    monkeypatch.setattr(cli, "_usual_workers", lambda config: 1)

    def parse(*flags: str) -> Config:
        assert cli.main(list(flags)) == 0
        return seen.pop()

    return parse


def test_without_arguments_it_is_azurites_ports_and_account(config_of: Flags) -> None:
    assert config_of() == Config()
    assert [getattr(Config(), name).port for name in ("blob", "queue", "table", "file", "admin")] == [
        10000,
        10001,
        10002,
        10003,
        10009,
    ]
    assert list(Config().accounts) == [DEVELOPMENT_ACCOUNT]


@pytest.mark.parametrize(
    ("flags", "settings"),
    [
        ("--location data", {"location": Path("data")}),
        ("-l data", {"location": Path("data")}),
        ("--database postgresql://me@there/store", {"database": "postgresql://me@there/store"}),
        ("--inMemoryPersistence", {"in_memory": True}),
        ("--inMemoryPersistence --extentMemoryLimit 1.5", {"in_memory": True, "memory_limit": 1_572_864}),
        ("--blobHost 0.0.0.0 --blobPort 7", {"blob": Listen(host="0.0.0.0", port=7)}),
        ("--queuePort 0", {"queue": Listen(port=0)}),
        ("--tableHost ::1", {"table": Listen(host="::1", port=10002)}),
        ("--filePort 9", {"file": Listen(port=9)}),
        ("--adminPort 10", {"admin": Listen(port=10)}),
        ("--cert a.pem --key a.key --pwd word", {"cert": "a.pem", "key": "a.key", "password": "word"}),
        ("--development-tls", {"development_tls": True}),
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
    assert [listen.host for listen in (config.blob, config.queue, config.table)] == ["0.0.0.0"] * 3


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
        ("--key a.key", 1, "--cert"),
        ("--pwd word", 1, "--cert"),
        ("--database postgresql://h/d --inMemoryPersistence", 1, "exclude each other"),
        ("--database sesame", 1, "postgresql://"),
        ("--workers 0", 1, "--workers 0"),
        ("--workers 65", 1, "from 1 to 64"),
        ("--workers two", 2, "--workers"),
        ("--workers 2 --inMemoryPersistence", 1, "--inMemoryPersistence"),
        ("--cert no-such-file.pem", 1, "no-such-file.pem"),
        ("--database postgresql://127.0.0.1:1/none", 1, "port 1"),
    ],
)
def test_a_mistake_ends_with_a_status_and_says_what_is_wrong(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, flags: str, status: int, says: str
) -> None:
    def started(app: App) -> str:
        raise AssertionError("it started")

    monkeypatch.setattr(cli, "_banner", started)
    arguments = [*ANYWHERE, "--location", str(tmp_path), *flags.split()]
    try:
        ended = cli.main(arguments)
    except SystemExit as end:
        ended = int(end.code or 0)
    error = capfd.readouterr().err
    assert ended == status
    assert says in error
    assert "Traceback" not in error


def test_a_port_that_is_taken_is_a_mistake_too(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert cli.main([*ANYWHERE, "--location", str(tmp_path), "--blobPort", port]) == 1
    assert port in capfd.readouterr().err


def test_two_servers_cannot_share_a_folder(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with running(tmp_path):
        assert cli.main([*ANYWHERE, "--location", str(tmp_path)]) == 1
    assert str(tmp_path) in capfd.readouterr().err


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
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
        message = cli._banner(server.app)
        assert message.startswith(f"Verditer {__version__} is serving from memory")
        string = next(line for line in message.splitlines() if line.startswith("DefaultEndpointsProtocol=http;"))
        assert f"AccountKey={DEVELOPMENT_KEY};" in string
        with BlobServiceClient.from_connection_string(string, retry_total=0) as client:
            client.create_container("hello")
            assert [container.name for container in client.list_containers()] == ["hello"]


def test_the_start_message_names_every_port(tmp_path: Path) -> None:
    with running(tmp_path, in_memory=True) as server:
        message = cli._banner(server.app)
        assert {name.capitalize() in message and f":{each.port}" in message for name, each in server.app.servers.items()} == {
            True
        }


@pytest.mark.parametrize(
    "database",
    [
        "postgresql://me:hidden@there:5432/store",
        "host=there dbname=store password=hidden",
        "postgresql://there/store?password=hidden",
    ],
)
def test_the_start_message_shows_the_database_and_not_its_password(database: str) -> None:
    shown = cli._store(Config(database=database))
    assert "store at there" in shown
    assert "hidden" not in shown


@pytest.fixture
def _logging_put_back() -> Iterator[None]:
    root, ours = logging.getLogger(), logging.getLogger("verditer")
    handlers, level = list(root.handlers), ours.level
    yield
    for handler in set(root.handlers) - set(handlers):
        root.removeHandler(handler)
        handler.close()
    ours.setLevel(level)


@pytest.mark.usefixtures("_logging_put_back")
def test_debug_also_writes_to_a_file(tmp_path: Path) -> None:
    cli._start_logging(Config(debug=tmp_path / "log.txt"))
    logging.getLogger("verditer").debug("a detail")
    assert "DEBUG verditer a detail" in (tmp_path / "log.txt").read_text()


@pytest.mark.parametrize("name", ["mine", DEVELOPMENT_ACCOUNT])
def test_the_program_starts_hides_keys_of_ones_own_and_stops_when_asked(tmp_path: Path, name: str) -> None:
    environment = os.environ | {"VERDITER_ACCOUNTS": f"{name}:{SECRET}:{OTHER}"}
    command = [sys.executable, "-m", "verditer", *ANYWHERE, "--location", str(tmp_path)]
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
