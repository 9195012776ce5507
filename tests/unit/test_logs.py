"""Log output: details go to the debug file only, and secrets go nowhere."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from verditer.serving.logs import redact, start_logging


def _start(debug_file: Path | None) -> None:
    logging.getLogger().handlers.clear()  # those of pytest, which would otherwise stay the only ones
    start_logging(debug_file)


@pytest.fixture(autouse=True)
def _restored_logging() -> Iterator[None]:
    root, ours = logging.getLogger(), logging.getLogger("verditer")
    handlers, root_level, level = list(root.handlers), root.level, ours.level
    yield
    for handler in set(root.handlers) - set(handlers):
        handler.close()
    root.handlers[:] = handlers
    root.setLevel(root_level)
    ours.setLevel(level)


def test_details_go_to_the_debug_file_and_not_to_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _start(tmp_path / "log.txt")
    logging.getLogger("verditer").debug("a detail of /a?sv=1&sig=SECRET&se=2")
    logging.getLogger("verditer").warning("a warning")
    written = (tmp_path / "log.txt").read_text()
    assert "DEBUG a detail of /a?sv=1&sig=<redacted>&se=2\n" in written
    assert "WARNING a warning" in written
    assert capsys.readouterr().err.count("\n") == 1


def test_without_a_debug_file_details_are_not_even_formatted(capsys: pytest.CaptureFixture[str]) -> None:
    _start(None)
    assert not logging.getLogger("verditer").isEnabledFor(logging.DEBUG)
    logging.getLogger("verditer").debug("a detail")
    assert capsys.readouterr().err == ""


def test_secrets_in_a_traceback_are_removed(tmp_path: Path) -> None:
    _start(tmp_path / "log.txt")
    try:
        raise ValueError("http://host/c/b?sig=SECRET")
    except ValueError:
        logging.getLogger("verditer").exception("it failed")
    written = (tmp_path / "log.txt").read_text()
    assert "Traceback" in written
    assert "SECRET" not in written


@pytest.mark.parametrize(
    "text",
    [
        "GET /acct/c/b?sv=2021-12-02&sig=SECRET%2B%3D&se=x",
        "/acct/c?SIG=SECRET",
        "x-ms-copy-source: http://host/c/b?sp=r&sig=SECRET",
        "x-ms-copy-source:http%3A%2F%2Fhost%2Fc%3Fsig%3DSECRET",
        "Authorization: SharedKey acct:SECRET=",
        "authorization: sharedkeylite acct:SECRET=",
        "Authorization: Bearer SECRET.SECRET.SECRET",
        "x-ms-copy-source-authorization: Bearer SECRET",
        "x-ms-encryption-key: SECRET=",
        "x-ms-source-encryption-key:SECRET=",
        "DefaultEndpointsProtocol=http;AccountName=a;AccountKey=SECRET==;BlobEndpoint=http://x",
        "postgresql://user:SECRET@host/db",
    ],
)
def test_secrets_are_removed(text: str) -> None:
    assert "SECRET" not in redact(text)


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: SharedKey acct:",
        "GET /acct/design=1?prefix=sig&comp=list",
        "x-ms-encryption-key-sha256: abc",
        "http://127.0.0.1:10000/acct/c/user@host",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redact(text) == text
