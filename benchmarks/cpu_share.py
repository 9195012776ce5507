"""Limits how much of a core a process may use, with a control group of the kernel (version 1 or 2). Needs root.

Several nodes, their database and the clients share the cores of one machine. A node that may use only a part of a core shows what
a second node adds while neither the database nor the machine is the limit.
"""

import itertools
import os
from pathlib import Path

from benchmarks.servers import CannotMeasure

_ROOT = Path("/sys/fs/cgroup")
_PERIOD_MICROSECONDS = 10_000
_numbers = itertools.count()


class CpuShare:
    def __init__(self, share: float) -> None:
        is_unified = (_ROOT / "cgroup.controllers").exists()
        self._folder = (_ROOT if is_unified else _ROOT / "cpu") / f"verditer-bench-{os.getpid()}-{next(_numbers)}"
        quota = int(share * _PERIOD_MICROSECONDS)
        limits = {"cpu.max": f"{quota} {_PERIOD_MICROSECONDS}"}
        if not is_unified:
            limits = {"cpu.cfs_period_us": str(_PERIOD_MICROSECONDS), "cpu.cfs_quota_us": str(quota)}
        try:
            self._folder.mkdir()
            for name, value in limits.items():
                (self._folder / name).write_text(value)
        except OSError as error:
            raise CannotMeasure(f"the CPU time of a process cannot be limited here: {error}") from None

    def add(self, pid: int) -> None:
        """This process, all of its threads, and what it starts from now on."""
        (self._folder / "cgroup.procs").write_text(str(pid))

    def remove(self) -> None:
        """When its processes have ended."""
        self._folder.rmdir()
