"""Run by the interpreter that has adlfs: typical filesystem operations through fsspec.

Arguments: connection string, container, a folder to send, a folder to receive into.
"""

import sys

import fsspec

connection_string, container, source, target = sys.argv[1:]
fs = fsspec.filesystem("abfs", connection_string=connection_string, skip_instance_cache=True)
NAMES = [
    "plain.txt",
    "dir/with space.txt",
    "dir/what?.txt",
    "dir/hash#.txt",
    "dir/100%2F.txt",
    "dir/ü日本.txt",
    "dir/dot.",
    "other/x.bin",
]


def below(names: list[str]) -> set[str]:
    return {name.removeprefix(f"{container}/") for name in names}


def write_and_read() -> None:
    for name in NAMES:
        with fs.open(f"{container}/{name}", "wb") as file:
            file.write(f"content of {name}".encode())
    for name in NAMES:
        with fs.open(f"{container}/{name}", "rb") as file:
            assert file.read() == f"content of {name}".encode()
    large = bytes(range(256)) * 40_000  # two blocks of adlfs' own size, five MiB
    with fs.open(f"{container}/large", "wb") as file:
        file.write(large)
    with fs.open(f"{container}/large", "rb") as file:
        file.seek(6_000_000)
        assert file.read(1000) == large[6_000_000:6_001_000]
    assert fs.cat_file(f"{container}/large", start=5, end=10) == large[5:10]
    for line in (b"one\n", b"two\n"):
        with fs.open(f"{container}/log", "ab") as file:
            file.write(line)
    assert fs.cat_file(f"{container}/log") == b"one\ntwo\n"
    fs.rm([f"{container}/large", f"{container}/log"])


def look() -> None:
    assert below(fs.ls(container)) == {"plain.txt", "dir", "other"}
    assert below(fs.find(container)) == set(NAMES)
    assert below(fs.glob(f"{container}/**/*.bin")) == {"other/x.bin"}
    assert below(fs.glob(f"{container}/dir/d*")) == {"dir/dot."}
    assert fs.isdir(f"{container}/dir")
    assert fs.isfile(f"{container}/dir/what?.txt")
    assert not fs.exists(f"{container}/dir/what")
    assert fs.info(f"{container}/plain.txt")["size"] == len("content of plain.txt")


def remove() -> None:
    fs.rm(f"{container}/plain.txt")
    fs.rm(f"{container}/dir", recursive=True)
    fs.invalidate_cache()
    assert below(fs.find(container)) == {"other/x.bin"}


def send_and_receive() -> None:
    fs.put(f"{source}/", f"{container}/tree/", recursive=True)
    fs.invalidate_cache()
    fs.get(f"{container}/tree/", f"{target}/", recursive=True)


write_and_read()
look()
remove()
send_and_receive()
