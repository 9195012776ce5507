"""Run by the interpreter that has impacket: files, at one dialect.

Arguments: host, port, share, account, key, a new directory, the dialect as a hexadecimal number.
"""

import io
import os
import sys

from impacket.smbconnection import SessionError, SMBConnection

host, port, share, account, key, directory, dialect = sys.argv[1:]
CONTENT = os.urandom(300_017)


def names(pattern: str) -> list[str]:
    found = [entry.get_longname() for entry in connection.listPath(share, pattern)]
    return sorted(name for name in found if name not in (".", ".."))


def read(path: str) -> bytes:
    received = io.BytesIO()
    connection.getFile(share, path, received.write)
    return received.getvalue()


connection = SMBConnection(host, host, sess_port=int(port), preferredDialect=int(dialect, 16))
assert connection.getDialect() == int(dialect, 16)
connection.login(account, key, "AZURE")
connection.createDirectory(share, directory)
connection.putFile(share, rf"{directory}\first", io.BytesIO(CONTENT).read)
assert read(rf"{directory}\first") == CONTENT
connection.putFile(share, rf"{directory}\second ü", io.BytesIO(b"second").read)
assert names(rf"{directory}\*") == ["first", "second ü"]
assert names(rf"{directory}\f*") == ["first"]
connection.rename(share, rf"{directory}\first", rf"{directory}\third")
assert names(rf"{directory}\*") == ["second ü", "third"]
assert read(rf"{directory}\third") == CONTENT
try:
    connection.deleteDirectory(share, directory)
    refusal = ""
except SessionError as error:
    refusal = str(error)
assert "STATUS_DIRECTORY_NOT_EMPTY" in refusal
connection.deleteFile(share, rf"{directory}\second ü")
connection.deleteFile(share, rf"{directory}\third")
connection.deleteDirectory(share, directory)
assert share in [entry["shi1_netname"][:-1].lower() for entry in connection.listShares()]
connection.logoff()
print("done")
