"""Files in one directory that has a million entries, and files fifty directories below the root. Gets and replacements are spread
over the whole directory; the listed page of a hundred files is in its middle.

Both servers of a row run Verditer. For the size of a directory `file_filling.py` stores the files; for the depth the directories
are created with requests, and `objects` is the depth.
"""

import random
import subprocess
import sys
import time

from benchmarks import wrk
from benchmarks.benchmark import Load, Reading
from benchmarks.cases import files
from benchmarks.cases.files import LIST, SHARE
from benchmarks.client import Client
from benchmarks.sas import target
from benchmarks.servers import ROOT, CannotMeasure, Server

FOLDER = f"{SHARE}/folder"
KNOWN_NAMES = 1_000
PAGE = 100
DEPTHS = (1, 50)


def fill(server: Server, count: int) -> None:
    """Write directly into the data folder while the server is stopped: with requests it would take an hour."""
    files.prepare(server)
    with Client(server) as client:
        client.ask("PUT", FOLDER, "restype=directory")
    server.stop()
    started = time.monotonic()
    words = [sys.executable, str(ROOT / "benchmarks" / "file_filling.py"), str(server.data), str(count)]
    done = subprocess.run(words, env=server.environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CannotMeasure(f"{server.side.label} could not be filled:\n{done.stderr[-2000:]}")
    server.objects = count
    print(f"  {server.side.label} has {count} files in one directory after {time.monotonic() - started:.0f} s", flush=True)
    server.start()


def get_rate(server: Server, load: Load) -> Reading:
    picks = random.Random(1).sample(range(server.objects), min(KNOWN_NAMES, server.objects))
    requests = [wrk.request_text("GET", target(f"{FOLDER}/{number:07d}")) for number in picks]
    return wrk.run(server, wrk.cycling(requests), load).reading


def list_rate(server: Server, load: Load) -> Reading:
    """A prefix of five digits selects a hundred files."""
    query = f"{LIST}&maxresults={PAGE}&prefix={f'{server.objects // 2:07d}'[:-2]}"
    with Client(server) as client:
        found = client.ask("GET", FOLDER, query).count(b"</File>")
    assert found == PAGE, f"the page has {found} files"
    return files.list_rate_below(server, load, FOLDER, query)


def replace_rate(server: Server, load: Load) -> Reading:
    """Create File over an existing file, so that the number of files does not change."""
    request = wrk.request_text("PUT", target(f"{FOLDER}/NUMBER"), b"", files.create_headers(128))
    numbers = f'string.format("%07d", math.random({server.objects}) - 1)'
    return wrk.run(server, wrk.numbered(request, "NUMBER", numbers), load).reading


def nest(server: Server, depth: int) -> None:
    """Create directories inside each other, with a hundred files in the innermost one."""
    server.objects = depth
    files.prepare(server)
    with Client(server) as client:
        for level in range(1, depth + 1):
            client.ask("PUT", innermost(level), "restype=directory")
        files.store_files(client, innermost(depth))


def innermost(depth: int) -> str:
    return "/".join([SHARE, *(f"level-{level:02d}" for level in range(1, depth + 1))])


def deep_get_rate(server: Server, load: Load) -> Reading:
    return files.get_rate_below(server, load, innermost(server.objects))


def deep_list_rate(server: Server, load: Load) -> Reading:
    return files.list_rate_below(server, load, innermost(server.objects))


def deep_create_rate(server: Server, load: Load) -> Reading:
    """Create File over the existing files."""
    path = f"{innermost(server.objects)}/blob-NUMBER"
    request = wrk.request_text("PUT", target(path), b"", files.create_headers(1024))
    return wrk.run(server, wrk.numbered(request, "NUMBER", 'string.format("%03d", count % 100)'), load).reading
