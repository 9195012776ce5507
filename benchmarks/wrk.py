"""Load from wrk: a generated Lua script sends complete request strings, so that the client needs little CPU."""

import json
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks.benchmark import Invalid, Load, Reading
from benchmarks.sas import VERSION
from benchmarks.servers import HOST, CannotMeasure, Server

REPORT = """
function done(summary, latency, requests)
    local errors = summary.errors
    local broken = errors.connect + errors.read + errors.write + errors.timeout
    print(string.format("report %d %d %d %d %d %d", summary.requests, summary.duration, errors.status, broken,
        latency:percentile(50), latency:percentile(99)))
end
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    requests: int
    seconds: float
    median_ms: float
    p99_ms: float

    @property
    def per_second(self) -> float:
        return self.requests / self.seconds

    @property
    def detail(self) -> str:
        return f"p50 {self.median_ms:.1f} ms, p99 {self.p99_ms:.1f} ms"

    @property
    def reading(self) -> Reading:
        return Reading(value=self.per_second, detail=self.detail)


def require_wrk() -> None:
    if shutil.which("wrk") is None:
        raise CannotMeasure("wrk is missing: it makes the load. Install it with: apt-get install wrk")


def run(server: Server, script: str, load: Load, threads: int = 1) -> Run:
    """One thread suffices: wrk needs a few microseconds per request, and the names it generates stay unique. Each thread runs the
    script independently and has its share of the connections."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "load.lua"
        path.write_text(script + REPORT)
        count = [f"-t{threads}", f"-c{load.connections}", f"-d{max(1, round(load.seconds))}s", "--timeout", "30s"]
        words = ["wrk", *count, "-s", str(path), f"http://{HOST}:{server.port}"]
        output = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    return parse(output)


def parse(output: str) -> Run:
    lines = [line.split()[1:] for line in output.splitlines() if line.startswith("report ")]
    if not lines:
        raise Invalid("wrk gave no report")
    requests, microseconds, refused, broken, median, p99 = map(int, lines[0])
    if refused or broken or not requests:
        raise Invalid(f"{refused} of {requests} responses were not 2xx, {broken} connections broke")
    return Run(requests=requests, seconds=microseconds / 1e6, median_ms=median / 1e3, p99_ms=p99 / 1e3)


def request_text(method: str, target: str, body: bytes | None = None, headers: dict[str, str] | None = None) -> str:
    """A complete HTTP request; `body` is ASCII."""
    lines = {"Host": HOST, "x-ms-version": VERSION, **(headers or {})}
    if body is not None:
        lines["Content-Length"] = str(len(body))
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"{method} {target} HTTP/1.1\r\n{head}\r\n{(body or b'').decode('ascii')}"


def cycling(requests: list[str]) -> str:
    """A script that sends these requests cyclically."""
    return f"""
local requests = {{{",".join(json.dumps(text) for text in requests)}}}
local count = 0
function request()
    count = count % #requests + 1
    return requests[count]
end
"""


def numbered(text: str, placeholder: str, numbers: str) -> str:
    """A script that sends `text` with `placeholder` replaced by the Lua expression `numbers`, in which `count` grows from 1."""
    head, _, tail = text.partition(placeholder)
    return f"""
local head, tail = {json.dumps(head)}, {json.dumps(tail)}
local count = 0
function request()
    count = count + 1
    return head .. ({numbers}) .. tail
end
"""
