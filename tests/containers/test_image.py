"""The image is built from the Containerfile and its server serves: as a user without rights, with its data in /data.

No registry is needed: the base is made by debootstrap. The container runs in a chroot, which needs no kernel features; what
depends on namespaces and cgroups (published ports, Compose, resource limits) is not tested here.
"""

import json
import os
import re
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from azure.storage.blob import BlobServiceClient

from tests.docs_snippets import ROOT
from verditer.services.account import DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY

PACKAGES = "python3,python3-venv,python3-pip,ca-certificates"
PATIENCE_SECONDS = 60.0
ANY_PORTS = [part for name in ("blob", "queue", "table", "file", "admin") for part in (f"--{name}Port", "0")]


class Buildah:
    def __init__(self, folder: Path) -> None:
        self.command = ["buildah", "--storage-driver", "vfs", "--root", str(folder / "store"), "--runroot", str(folder / "run")]

    def __call__(self, *arguments: str) -> str:
        ended = subprocess.run([*self.command, *arguments], capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stderr[-2000:]
        return ended.stdout.strip()


@pytest.fixture(scope="module")
def buildah(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Buildah]:
    folder = tmp_path_factory.mktemp("images")
    yield Buildah(folder)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def image(buildah: Buildah, tmp_path_factory: pytest.TempPathFactory) -> str:
    base = tmp_path_factory.mktemp("base")
    subprocess.run(["debootstrap", "--variant=minbase", f"--include={PACKAGES}", "bookworm", str(base)], check=True)
    container = buildah("from", "scratch")
    buildah("add", "--quiet", container, str(base), "/")
    buildah("commit", "--quiet", container, "base")
    shutil.rmtree(base)
    trusted = [f"--volume={path}:{path}:ro" for path in ("/etc/ssl/certs", "/etc/pip.conf") if Path(path).exists()]
    arguments = ["--isolation=chroot", "--network=host", "--format=docker", "--build-arg=BASE=localhost/base", *trusted]
    buildah("build", *arguments, "--tag=verditer", f"--file={ROOT / 'Containerfile'}", str(ROOT))
    return "verditer"


def test_the_image_has_a_user_a_volume_ports_and_a_health_check(buildah: Buildah, image: str) -> None:
    config = json.loads(buildah("inspect", "--type=image", image))["Docker"]["config"]
    assert config["User"] == "10001:10001"
    assert config["Volumes"] == {"/data": {}}
    assert set(config["ExposedPorts"]) == {f"{port}/tcp" for port in (10000, 10001, 10002, 10003, 10009)}
    assert "/health/ready" in " ".join(config["Healthcheck"]["Test"])


def test_the_image_starts_the_server_as_a_user_without_rights(buildah: Buildah, image: str) -> None:
    container = buildah("from", image)
    config = json.loads(buildah("inspect", "--type=image", image))["Docker"]["config"]
    command = [*buildah.command, "run", "--isolation=chroot", "--network=host", container, "--", *config["Cmd"], *ANY_PORTS]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)
    try:
        assert process.stdout is not None
        message = ""
        end = time.monotonic() + PATIENCE_SECONDS
        while "AccountKey=" not in message and time.monotonic() < end:
            message += process.stdout.readline()
        ports = dict(re.findall(r"^  (\w+) +http://0\.0\.0\.0:([0-9]+)$", message, re.MULTILINE))
        assert set(ports) >= {"Blob", "Queue", "Table", "File", "Admin"}, message
        with urllib.request.urlopen(f"http://127.0.0.1:{ports['Admin']}/health/ready") as answer:
            assert answer.status == 200
        endpoint = f"http://127.0.0.1:{ports['Blob']}/{DEVELOPMENT_ACCOUNT}"
        credential = {"account_name": DEVELOPMENT_ACCOUNT, "account_key": DEVELOPMENT_KEY}
        BlobServiceClient(endpoint, credential=credential).create_container("box").upload_blob("a", bytes(100_000))
        assert {os.stat(f"/proc/{each}").st_uid for each in _serving(process.pid)} == {10001}
    finally:
        process.terminate()
        process.wait(PATIENCE_SECONDS)


def _serving(session: int) -> list[int]:
    """The processes of the server: they belong to the session that the test has started."""
    found = []
    for each in filter(str.isdigit, os.listdir("/proc")):
        try:
            is_ours = os.getsid(int(each)) == session
            text = Path(f"/proc/{each}/cmdline").read_bytes()
        except OSError:
            continue
        if is_ours and text.split(b"\0")[1:2] == [b"/opt/verditer/bin/verditer"]:
            found.append(int(each))
    assert found
    return found
