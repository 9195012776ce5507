"""Run by the interpreter that has smbprotocol: files through its high-level functions.

Arguments: host, port, share, account, key, a new directory, "sign" or "encrypt".
"""

import os
import sys

import smbclient
import smbclient.path
import smbclient.shutil

host, port, share, account, key, directory, protection = sys.argv[1:]
CONTENT = os.urandom(3 * 1024 * 1024 + 17)
where = {"port": int(port)}
base = rf"\\{host}\{share}\{directory}"


def write_and_read() -> None:
    with smbclient.open_file(rf"{base}\first", mode="xb", **where) as file:
        file.write(CONTENT)
    with smbclient.open_file(rf"{base}\first", mode="rb", **where) as file:
        assert file.read() == CONTENT
        file.seek(2_000_000)
        assert file.read(1000) == CONTENT[2_000_000:2_001_000]
    with smbclient.open_file(rf"{base}\first", mode="ab", **where) as file:
        file.write(b"more")
    assert smbclient.stat(rf"{base}\first", **where).st_size == len(CONTENT) + 4
    smbclient.truncate(rf"{base}\first", 10, **where)
    with smbclient.open_file(rf"{base}\first", mode="rb", **where) as file:
        assert file.read() == CONTENT[:10]


def look() -> None:
    smbclient.mkdir(rf"{base}\sub", **where)
    names = [f"ünïcødé {number:03d}" for number in range(150)]
    for name in names:
        with smbclient.open_file(rf"{base}\sub\{name}", mode="wb", **where) as file:
            file.write(name.encode())
    assert sorted(smbclient.listdir(rf"{base}\sub", **where)) == names
    assert sorted(entry.name for entry in smbclient.scandir(rf"{base}\sub", **where)) == names
    assert sorted(smbclient.listdir(rf"{base}\sub", search_pattern="*01?", **where)) == names[10:20]
    found = [(folder, sorted(files)) for folder, _, files in smbclient.walk(base, **where)]
    assert found == [(base, ["first"]), (rf"{base}\sub", names)]


def change() -> None:
    smbclient.rename(rf"{base}\first", rf"{base}\second", **where)
    assert not smbclient.path.exists(rf"{base}\first", **where)
    smbclient.replace(rf"{base}\second", rf"{base}\sub\ünïcødé 000", **where)
    smbclient.shutil.copyfile(rf"{base}\sub\ünïcødé 000", rf"{base}\copy", **where)
    with smbclient.open_file(rf"{base}\copy", mode="rb", **where) as file:
        assert file.read() == CONTENT[:10]
    smbclient.utime(rf"{base}\copy", times=(1_577_934_245, 1_577_934_246), **where)
    assert smbclient.stat(rf"{base}\copy", **where).st_mtime == 1_577_934_246
    assert smbclient.stat_volume(base, **where).total_size > 0


def remove() -> None:
    smbclient.remove(rf"{base}\copy", **where)
    for name in smbclient.listdir(rf"{base}\sub", **where):
        smbclient.remove(rf"{base}\sub\{name}", **where)
    smbclient.rmdir(rf"{base}\sub", **where)
    smbclient.rmdir(base, **where)
    assert not smbclient.path.exists(base, **where)


smbclient.register_session(host, username=account, password=key, encrypt=protection == "encrypt", **where)
smbclient.mkdir(base, **where)
write_and_read()
look()
change()
remove()
smbclient.reset_connection_cache()
print("done")
