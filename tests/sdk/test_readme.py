"""The program in the README runs unchanged."""

import re
from pathlib import Path

import pytest

from tests.rest.running import running

README = Path(__file__).parents[2] / "README.md"
USUAL = "127.0.0.1:10000"


def test_the_first_program_of_the_readme_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # contract B1
    (program,) = re.findall(r"^```python\n(.*?)^```$", README.read_text(), re.DOTALL | re.MULTILINE)
    assert USUAL in program
    with running(tmp_path) as server:
        exec(compile(program.replace(USUAL, f"127.0.0.1:{server.port}"), "README.md", "exec"), {})
    assert capsys.readouterr().out == "changed by somebody else: buy milk, bread\n"
