"""What a judge connects to: an address, a share, and the credentials of an account."""

from dataclasses import dataclass
from pathlib import Path

HOST = "127.0.0.1"


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """A share of a running server. The password is the account key as text."""

    port: int
    share: str
    account: str
    key: str
    folder: Path
    """A folder for the files of the judge."""

    @property
    def unc(self) -> str:
        return f"//{HOST}/{self.share}"

    def authentication_file(self) -> Path:
        """The credentials as Samba's tools read them: a key can contain characters that their command line would split."""
        path = self.folder / "authentication"
        path.write_text(f"username={self.account}\npassword={self.key}\ndomain=AZURE\n")
        path.chmod(0o600)
        return path
