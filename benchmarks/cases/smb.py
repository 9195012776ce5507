"""A share over SMB: transfer of one large file; opening and closing a file; reading and writing 4 KiB at random positions of a
file; listing a directory of a thousand files; memory above idle while a large file is written and read. Both servers sign every
message and sync every write before they answer. The clients ask for no oplocks.

Samba has its share in its configuration. Verditer's share is created over REST.
"""

import secrets
import tempfile

from benchmarks import smb
from benchmarks.benchmark import Load, Reading
from benchmarks.cases.memory import MEGABYTE, idle, sampled
from benchmarks.client import Client
from benchmarks.servers import Server
from tests.smb_judges.samba import SHARE

MIB = 1 << 20
SIZE_MIB = 256
GETS = 3  # per reading: a single one is short
CONNECTIONS = 8


def prepare(server: Server) -> None:
    if server.side.has_rest:
        with Client(server, "file") as client:
            client.ask("PUT", SHARE, "restype=share")


def store_small(server: Server) -> None:
    prepare(server)
    smb.fill(server, CONNECTIONS)


def store_large(server: Server) -> None:
    prepare(server)
    put(server, "large")


def put(server: Server, name: str) -> float:
    with tempfile.NamedTemporaryFile(dir=server.folder) as file:
        for _ in range(SIZE_MIB):
            file.write(secrets.token_bytes(MIB))
        file.flush()
        return smb.transfer(server, f"put {file.name} {name}")


def write_rate(server: Server, load: Load) -> Reading:
    return Reading(value=put(server, secrets.token_hex(4)))


def read_rate(server: Server, load: Load) -> Reading:
    return Reading(value=mean_of_gets(server, "sign"))


def read_encrypted_rate(server: Server, load: Load) -> Reading:
    return Reading(value=mean_of_gets(server, "encrypt"))


def mean_of_gets(server: Server, protection: str) -> float:
    rates = [smb.transfer(server, "get large /dev/null", protection) for _ in range(GETS)]
    return GETS / sum(1 / rate for rate in rates)


def open_close_rate(server: Server, load: Load) -> Reading:
    return smb.run(server, "open_close", load)


def read_4k_rate(server: Server, load: Load) -> Reading:
    return smb.run(server, "read_4k", load)


def write_4k_rate(server: Server, load: Load) -> Reading:
    return smb.run(server, "write_4k", load)


def list_rate(server: Server, load: Load) -> Reading:
    return smb.run(server, "list", load)


def memory_peak(server: Server, load: Load) -> Reading:
    """The highest reading during a put and a get, above idle."""
    idle_megabytes = idle(server, load).value
    with sampled(server) as samples:
        put(server, "large")
        mean_of_gets(server, "sign")
    return Reading(value=max(0.0, max(samples) / MEGABYTE - idle_megabytes), detail=f"over {idle_megabytes:.0f} MB idle")
