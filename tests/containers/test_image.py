"""The image is built from the Containerfile and its server serves: as a user without rights, with its data in /data, and as two
nodes of one cluster.

No registry is needed: the base is made by debootstrap. The container runs in a chroot, which needs no kernel features; what
depends on namespaces and cgroups (published ports, Compose, resource limits) is not tested here.
"""

import json
import os
import re
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from azure.storage.blob import BlobServiceClient
from psycopg.conninfo import conninfo_to_dict

from tests.contract.postgres import running_server
from tests.contract.s3 import missing, running_s3_server
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


@contextmanager
def serving(buildah: Buildah, image: str, command: list[str], *options: str) -> Iterator[tuple[dict[str, str], int]]:
    """The addresses of a server in a container by the names of its ports, and its session."""
    container = buildah("from", image)
    run = [*buildah.command, "run", "--isolation=chroot", "--network=host", *options, container, "--", *command, *ANY_PORTS]
    process = subprocess.Popen(run, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)
    try:
        assert process.stdout is not None
        message = ""
        while "AccountKey=" not in message:
            line = process.stdout.readline()
            assert line, message
            message += line
        ports = dict(re.findall(r"^  (\w+) +http://0\.0\.0\.0:([0-9]+)$", message, re.MULTILINE))
        assert set(ports) >= {"Blob", "Queue", "Table", "File", "Admin"}, message
        yield {name: f"http://127.0.0.1:{port}" for name, port in ports.items()}, process.pid
    finally:
        process.terminate()
        process.wait(PATIENCE_SECONDS)


def client_of(addresses: dict[str, str]) -> BlobServiceClient:
    credential = {"account_name": DEVELOPMENT_ACCOUNT, "account_key": DEVELOPMENT_KEY}
    return BlobServiceClient(f"{addresses['Blob']}/{DEVELOPMENT_ACCOUNT}", credential=credential)


def test_the_image_starts_the_server_as_a_user_without_rights(buildah: Buildah, image: str) -> None:
    command = json.loads(buildah("inspect", "--type=image", image))["Docker"]["config"]["Cmd"]
    with serving(buildah, image, command) as (addresses, session):
        with urllib.request.urlopen(f"{addresses['Admin']}/health/ready") as answer:
            assert answer.status == 200
        client_of(addresses).create_container("box").upload_blob("a", bytes(100_000))
        assert {os.stat(f"/proc/{each}").st_uid for each in _serving(session)} == {10001}


def test_two_nodes_started_as_the_cluster_recipe_says_serve_the_same_data(buildah: Buildah, image: str) -> None:
    """PostgreSQL and the S3 server of the tests stand in for the images of the recipe, which need a registry."""
    if reason := missing():
        pytest.skip(reason)
    recipe = yaml.safe_load((ROOT / "compose.cluster.yaml").read_text())["services"]
    assert recipe["one"]["command"] == recipe["two"]["command"]
    with running_server() as postgres, running_s3_server() as s3:
        database = postgres.make_database()
        sockets = Path(str(conninfo_to_dict(database)["host"]))
        sockets.chmod(0o711)  # the user of the image may reach the socket
        command = list(recipe["one"]["command"])
        command[command.index("--database") + 1] = database
        command[command.index("--extents") + 1] = f"s3://{s3.make_bucket()}/extents"
        assert set(s3.environment) <= set(recipe["one"]["environment"])
        options = [f"--volume={sockets}:{sockets}", *[f"--env={name}={value}" for name, value in s3.environment.items()]]
        with serving(buildah, image, command, *options) as (one, _), serving(buildah, image, command, *options) as (two, _):
            body = os.urandom(300_000)
            client_of(one).create_container("box").upload_blob("a", body)
            assert client_of(two).get_blob_client("box", "a").download_blob().readall() == body


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
