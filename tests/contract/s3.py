"""A real S3 server for tests: s3proxy, a Java program from Maven Central, on a free port, with its objects in a folder.

`python -m tests.contract.s3` fetches it into `.s3` (55 MB, seconds) and checks its digest; `make test` calls that. Without Java,
or when it cannot be fetched, the tests that need it are skipped and say so. With `VERDITER_S3=ceph` they use Ceph (`ceph.py`).
"""

import contextlib
import ctypes
import hashlib
import http.client
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path

from awscrt.auth import AwsCredentialsProvider

from tests.contract.signals import send_signal
from verditer.stream.s3_client import Credentials
from verditer.stream.s3_location import S3Location

VERSION = "4.1.0"
JAR = Path(__file__).parents[2] / f".s3/s3proxy-{VERSION}.jar"
_URL = f"https://repo1.maven.org/maven2/org/gaul/s3proxy/{VERSION}/s3proxy-{VERSION}-jar-with-dependencies.jar"
_SHA256 = "a4d025969aaf796616ed4b1e2491d87d455ce84bb28cb9db086b2e6aaa68b48d"
_FETCH_SECONDS = 120
_START_SECONDS = 60

# A server that starts quickly on two cores: the first compiler only, the simplest collector.
_JAVA = ("java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData", "-Xshare:auto", "-Xmx256m")


class S3Server(ABC):
    """`key` and `secret` are its only credentials."""

    def __init__(self, home: Path) -> None:
        self.key, self.secret = "verditer-test", secrets.token_hex(16)
        self.port = free_port()
        self.home = home

    @abstractmethod
    def start(self) -> None:
        """Returns when it answers. It may have been killed before."""

    @abstractmethod
    def signal(self, number: int) -> None: ...

    @abstractmethod
    def kill(self) -> None: ...

    @abstractmethod
    def make_bucket(self) -> str: ...

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        """What the AWS SDKs read, and a server that is to use this store."""
        return {"AWS_ENDPOINT_URL": self.endpoint, "AWS_ACCESS_KEY_ID": self.key, "AWS_SECRET_ACCESS_KEY": self.secret}

    def credentials(self) -> Credentials:
        return Credentials(AwsCredentialsProvider.new_static(self.key, self.secret))

    def location(self, prefix: str = "extents") -> S3Location:
        return S3Location(bucket=self.make_bucket(), prefix=prefix, endpoint=self.endpoint)

    def remove(self) -> None:
        self.kill()
        shutil.rmtree(self.home)

    def await_answer(self, processes: Sequence["subprocess.Popen[bytes]"], seconds: float) -> None:
        end = time.monotonic() + seconds
        while not self._answers():
            for process in processes:
                assert process.poll() is None, f"{process.args!r} ended: see {self.home}"
            assert time.monotonic() < end, "the S3 server does not start"
            time.sleep(0.02)

    def _answers(self) -> bool:
        """A connection alone proves nothing: while nobody listens, Linux may connect a socket to itself."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=1)
        with contextlib.suppress(OSError, http.client.HTTPException), contextlib.closing(connection):
            connection.request("GET", "/")
            return connection.getresponse().status < 500
        return False


class S3Proxy(S3Server):
    """Buckets are folders below `home`."""

    def __init__(self) -> None:
        super().__init__(Path(tempfile.mkdtemp(prefix="verditer-s3-", dir="/tmp")))
        self._numbers = count()
        self._process: subprocess.Popen[bytes] | None = None
        (self.home / "objects").mkdir()
        (self.home / "s3proxy.conf").write_text(_CONFIGURATION.format(server=self))

    def make_bucket(self) -> str:
        """A bucket is a folder of the file system that s3proxy serves."""
        name = f"bucket-{next(self._numbers)}"
        (self.home / "objects" / name).mkdir()
        return name

    def start(self) -> None:
        command = [*_JAVA, "-jar", str(JAR), "--properties", str(self.home / "s3proxy.conf")]
        with (self.home / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, preexec_fn=end_with_the_tests
            )
        self.await_answer([self._process], _START_SECONDS)

    def signal(self, number: int) -> None:
        assert self._process is not None
        send_signal(self._process.pid, number)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


_CONFIGURATION = """\
s3proxy.endpoint={server.endpoint}
s3proxy.authorization=aws-v4
s3proxy.identity={server.key}
s3proxy.credential={server.secret}
jclouds.provider=filesystem-nio2
jclouds.identity=unused
jclouds.credential=unused
jclouds.filesystem.basedir={server.home}/objects
"""


def end_with_the_tests() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


def missing() -> str | None:
    """Why there is no S3 server on this machine."""
    if _is_ceph():
        from tests.contract import ceph

        return ceph.missing()
    if shutil.which("java") is None:
        return "s3proxy needs Java"
    return None if JAR.exists() else "s3proxy is not there: python -m tests.contract.s3"


@contextlib.contextmanager
def running_s3_server() -> Iterator[S3Server]:
    server = _new_server()
    try:
        server.start()
        yield server
    finally:
        server.remove()


def _new_server() -> S3Server:
    if _is_ceph():
        from tests.contract.ceph import CephServer

        return CephServer()
    return S3Proxy()


def _is_ceph() -> bool:
    return os.environ.get("VERDITER_S3") == "ceph"


def fetch() -> None:
    JAR.parent.mkdir(exist_ok=True)
    with urllib.request.urlopen(_URL, timeout=_FETCH_SECONDS) as answer:
        data = answer.read()
    assert hashlib.sha256(data).hexdigest() == _SHA256, "s3proxy is not what it was when this digest was written down"
    unfinished = JAR.with_suffix(f".{os.getpid()}")
    unfinished.write_bytes(data)
    unfinished.rename(JAR)


if __name__ == "__main__" and shutil.which("java") is not None and not JAR.exists():
    try:
        print(f"fetching s3proxy {VERSION} …", flush=True)
        fetch()
    except OSError as error:
        print(f"not fetched, tests on S3 will be skipped: {error}")
