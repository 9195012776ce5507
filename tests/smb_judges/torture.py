"""smbtorture, Samba's test suite for SMB servers, as functions: the names of its tests, and the outcome of one."""

import re
import subprocess

from tests.smb_judges.target import Target

PATIENCE_SECONDS = 1500  # maxfid makes, closes and deletes 16384 files: some minutes, and many on a busy machine


def listed_tests() -> list[str]:
    """Every SMB2 test, named as in `torture_tests.py`."""
    output = subprocess.run(["smbtorture", "--list"], capture_output=True, text=True, check=True).stdout
    return [short_name(line.strip()) for line in output.splitlines() if line.strip().startswith("smb2.")]


def short_name(listed: str) -> str:
    """`smb2.lock.cancel.cancel` → `lock.cancel`: the last part is there twice. A part may itself contain dots."""
    name = listed.removeprefix("smb2.")
    for dot in re.finditer(r"\.", name):
        head, tail = name[: dot.start()], name[dot.end() :]
        if head == tail or head.endswith(f".{tail}"):
            return head
    return name


def outcome(target: Target, test: str) -> tuple[str, str]:
    """`success`, `failure`, `error` or `skip`, and everything that smbtorture printed."""
    words = [
        *("smbtorture", target.unc, "-p", str(target.port), "-A", str(target.authentication_file())),
        *("--configfile=/dev/null", "--format=subunit", "--option=torture:progress=no", f"smb2.{test}"),
    ]
    try:
        done = subprocess.run(words, capture_output=True, text=True, errors="replace", timeout=PATIENCE_SECONDS)
    except subprocess.TimeoutExpired as late:
        return "timeout", str(late.stdout)[-4000:]
    text = done.stdout + done.stderr
    results = re.findall(r"^(success|failure|error|skip): ", text, re.MULTILINE)
    return (results[-1] if results else "nothing"), text[-4000:]
