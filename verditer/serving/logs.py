"""Log output: warnings and errors on standard error, and with `--debug` every detail in a file.

Secrets never reach either: each line passes `redact` last, whatever wrote it.
"""

import logging
import re
import sys
from pathlib import Path

_HIDDEN = "<redacted>"
_SECRETS = (
    # The signature of a SAS, also in a URL that is percent-encoded inside another one.
    re.compile(r"((?:\b|%[0-9A-F]{2})sig(?:=|%3D))[^&\s\"'<>]+", re.IGNORECASE),
    re.compile(r"(\bAccountKey=)[^;\s\"']+", re.IGNORECASE),
    re.compile(r"(\bSharedKey(?:Lite)? [^\s:]*:)[^\s\"']+", re.IGNORECASE),
    re.compile(r"(\bBearer )[^\s\"',]+", re.IGNORECASE),
    re.compile(r"([?&]token=)[^&\s\"']+", re.IGNORECASE),  # the start link of the explorer
    re.compile(r"(\bverditer(?:-[0-9]+)?=)[^;\s\"']+", re.IGNORECASE),  # its cookie
    re.compile(r"(\b[a-z-]*encryption-key:)\s*[^\s\"']+", re.IGNORECASE),
    re.compile(r"(\b[a-z]+://[^\s/:@]*:)[^\s/@]+(?=@)", re.IGNORECASE),  # the password in a database URL
)


def redact(text: str) -> str:
    for secret in _SECRETS:
        text = secret.sub(rf"\1{_HIDDEN}", text)
    return text


def start_logging(debug_file: Path | None) -> None:
    """Raises ValueError, with a message for the user, when the debug file cannot be opened."""
    terminal = logging.StreamHandler(sys.stderr)
    terminal.setLevel(logging.INFO)
    terminal.setFormatter(_RedactingFormatter("%(asctime)s %(levelname)s %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[terminal])
    if debug_file is not None:
        logging.getLogger().addHandler(_debug_handler(debug_file))
        logging.getLogger("verditer").setLevel(logging.DEBUG)


def _debug_handler(path: Path) -> logging.Handler:
    """Workers append to the same file: a record is one write, so records do not mix."""
    try:
        handler = logging.FileHandler(path, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise ValueError(f"--debug {path}: the file cannot be written: {error.strerror}") from None
    handler.setFormatter(_RedactingFormatter("%(asctime)s %(process)d %(levelname)s %(message)s"))
    return handler


class _RedactingFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return redact(super().format(record))
