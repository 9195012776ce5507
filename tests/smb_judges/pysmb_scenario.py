"""Run by the interpreter that has pysmb, which speaks SMB 2.0.2: store, read, rename, list, delete.

Arguments: host, port, share, account, key, a new directory, and a word that is not used.
"""

import io
import os
import sys

from smb.SMBConnection import SMBConnection

host, port, share, account, key, directory, _ = sys.argv[1:]
CONTENT = os.urandom(300_017)


def names() -> list[str]:
    found = [entry.filename for entry in connection.listPath(share, directory)]
    return sorted(name for name in found if name not in (".", ".."))


def read(path: str) -> bytes:
    received = io.BytesIO()
    connection.retrieveFile(share, path, received)
    return received.getvalue()


connection = SMBConnection(account, key, "judge", "server", domain="AZURE", use_ntlm_v2=True, is_direct_tcp=True)
assert connection.connect(host, int(port))
assert connection.isUsingSMB2
connection.createDirectory(share, directory)
connection.storeFile(share, f"{directory}/first", io.BytesIO(CONTENT))
assert read(f"{directory}/first") == CONTENT
connection.storeFile(share, f"{directory}/second ü", io.BytesIO(b"second"))
assert names() == ["first", "second ü"]
connection.rename(share, f"{directory}/first", f"{directory}/third")
assert names() == ["second ü", "third"]
assert connection.getAttributes(share, f"{directory}/third").file_size == len(CONTENT)
connection.deleteFiles(share, f"{directory}/second ü")
connection.deleteFiles(share, f"{directory}/third")
connection.deleteDirectory(share, directory)
connection.close()
print("done")
