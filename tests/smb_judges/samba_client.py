"""Samba's smbclient as a function: a list of its commands in, its output out."""

import subprocess
from dataclasses import dataclass

from tests.smb_judges.target import HOST, Target

PATIENCE_SECONDS = 120


@dataclass(frozen=True, kw_only=True, slots=True)
class SmbClient:
    """`dialect` is the only one that it offers. `options` are lines of smb.conf."""

    target: Target
    dialect: str = "SMB3_11"
    protection: str = "sign"
    options: tuple[str, ...] = ()

    def run(self, *commands: str) -> str:
        """The output of the commands, which must all succeed."""
        output = self.attempt(*commands)
        assert "NT_STATUS_" not in output, output
        return output

    def attempt(self, *commands: str) -> str:
        """The output of the commands, with the statuses of those that failed."""
        return self._start(self.target.unc, "--command", ";".join(commands))

    def list_shares(self) -> str:
        return self._start("--list", HOST, "--grepable")

    def _start(self, *words: str) -> str:
        options = [f"client min protocol={self.dialect}", f"client max protocol={self.dialect}", *self.options]
        command = [
            *("smbclient", *words, "--port", str(self.target.port)),
            *("--authentication-file", str(self.target.authentication_file()), f"--client-protection={self.protection}"),
            *("--configfile", "/dev/null", *(f"--option={option}" for option in options)),
        ]
        done = subprocess.run(command, capture_output=True, text=True, cwd=self.target.folder, timeout=PATIENCE_SECONDS)
        return done.stdout + done.stderr
