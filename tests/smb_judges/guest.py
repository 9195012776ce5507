"""The SMB client of the Linux kernel: a small QEMU guest with Debian's kernel mounts the share and runs a busybox script on it.

The guest runs without KVM, so it needs no rights on the host. It has no disk: its root is an archive in memory. It reaches the
loopback of the host as 10.0.2.2 and nothing else of the machine. `python -m tests.smb_judges.install` unpacks the kernel.
"""

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.smb_judges.install import GUEST
from tests.smb_judges.target import Target

HOST_IN_GUEST = "10.0.2.2"
PATIENCE_SECONDS = 380
MODULES = (
    *("virtio_pci", "virtio_net", "cifs", "nls_utf8"),
    *("ccm", "gcm", "cmac", "hmac", "md5", "sha256_generic", "sha512_generic", "ecb", "ctr", "seqiv"),
    *("aes_generic", "aesni_intel", "ghash_generic", "cifs_arc4", "cifs_md4"),
)
INIT = """#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev 2>/dev/null
for module in $(cat /modules); do insmod /lib/$module.ko 2>/dev/null; done
echo 4 > /proc/sys/kernel/printk
ip link set lo up; ip link set eth0 up; ip addr add 10.0.2.15/24 dev eth0; ip route add default via 10.0.2.2
echo GUEST-BEGIN
status=0
for number in $(cat /mounts); do
    mkdir -p /m$number
    mount -t cifs "$(cat /share)" /m$number -o "$(cat /options$number)" || status=32
done
[ $status = 0 ] && { cd /m1; sh -e /script; status=$?; cd /; }
for number in $(cat /mounts); do umount /m$number; done
echo "GUEST-END $status"
poweroff -f
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """The exit status of the script, or 32 if a mount failed, and what was printed."""

    status: int
    output: str


def run_in_guest(target: Target, script: str, *options: str) -> Outcome:
    """Mount the share once for each of the `options`, such as `vers=3.1.1,seal`, at /m1, /m2 and so on, and run the script
    in /m1."""
    with TemporaryDirectory() as folder:
        archive = make_archive(Path(folder), target, script, options)
        command = [
            *("qemu-system-x86_64", "-machine", "q35,accel=tcg", "-cpu", "max", "-m", "512", "-nographic", "-no-reboot"),
            *("-kernel", str(next(GUEST.glob("root/boot/vmlinuz-*"))), "-initrd", str(archive)),
            *("-append", "console=ttyS0 panic=-1 quiet no_timer_check"),
            *("-netdev", "user,id=n", "-device", "virtio-net-pci,netdev=n,romfile="),
        ]
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL, timeout=PATIENCE_SECONDS
        )
    printed = re.search(r"GUEST-BEGIN\r?\n(.*)GUEST-END (\d+)", done.stdout, re.DOTALL)
    assert printed is not None, f"the guest did not come up:\n{done.stdout[-3000:]}\n{done.stderr[-1000:]}"
    return Outcome(status=int(printed[2]), output=printed[1].replace("\r\n", "\n"))


def make_archive(folder: Path, target: Target, script: str, options: tuple[str, ...]) -> Path:
    """The root of the guest: busybox, the modules, the mounts and the script."""
    root = folder / "root"
    for name in ("bin", "lib", "proc", "sys", "dev", "tmp", "etc"):
        (root / name).mkdir(parents=True)
    for program in (GUEST / "root/bin/busybox", GUEST / "lock"):
        shutil.copy(program, root / "bin")
    modules = module_files()
    order = load_order(modules)
    for name in order:
        shutil.copy(modules[name], root / "lib" / f"{name}.ko")
    account = f"ip={HOST_IN_GUEST},port={target.port},username={target.account},password={target.key}"
    files = {"modules": "\n".join(order), "share": f"//{HOST_IN_GUEST}/{target.share}", "script": script, "init": INIT}
    files |= {"mounts": " ".join(str(number) for number in range(1, len(options) + 1))}
    files |= {f"options{number}": f"{account},{option}" for number, option in enumerate(options, 1)}
    for name, text in files.items():
        (root / name).write_text(text)
    (root / "init").chmod(0o755)
    subprocess.run("find . | cpio -o -H newc --quiet | gzip -1 > ../archive", shell=True, check=True, cwd=root)
    return folder / "archive"


def module_files() -> dict[str, Path]:
    return {path.stem.replace("-", "_"): path for path in (GUEST / "root/lib/modules").rglob("*.ko")}


def load_order(modules: dict[str, Path]) -> list[str]:
    """The wanted modules, each after those that it depends on. A module that the kernel has built in has no file."""
    order: list[str] = []

    def add(name: str) -> None:
        if name in order or name not in modules:
            return
        found = re.search(rb"depends=([^\0]*)\0", modules[name].read_bytes())
        for dependency in filter(None, (found[1].decode() if found else "").split(",")):
            add(dependency.replace("-", "_"))
        order.append(name)

    for name in MODULES:
        add(name)
    return order
