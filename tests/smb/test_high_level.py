"""The module smbclient of smbprotocol: what a program does with files, as with the module os."""

import io
from collections.abc import Iterator

import pytest
import smbclient
import smbclient.path
import smbclient.shutil
from azure.storage.fileshare import ShareClient

from tests.rest.running import Running


@pytest.fixture
def root(account: Running, sdk: ShareClient) -> Iterator[tuple[str, dict[str, object]]]:
    cache: dict[str, object] = {}
    options: dict[str, object] = {
        "username": account.account,
        "password": account.key,
        "port": account.app.servers["smb"].port,
        "connection_cache": cache,
    }
    yield rf"\\127.0.0.1\{sdk.share_name}", options
    smbclient.reset_connection_cache(connection_cache=cache)


def test_a_program_works_with_files_as_it_does_locally(root: tuple[str, dict[str, object]]) -> None:
    share, options = root
    smbclient.mkdir(rf"{share}\dir", **options)
    with smbclient.open_file(rf"{share}\dir\a.txt", mode="w", **options) as file:
        file.write("hello")
    with smbclient.open_file(rf"{share}\dir\a.txt", mode="ab", **options) as file:
        file.write(b" world")
    with smbclient.open_file(rf"{share}\dir\a.txt", mode="rb", **options) as file:
        assert file.read() == b"hello world"
        assert file.seek(6, io.SEEK_SET) == 6
        assert file.read() == b"world"
    assert smbclient.stat(rf"{share}\dir\a.txt", **options).st_size == 11
    assert smbclient.listdir(rf"{share}\dir", **options) == ["a.txt"]
    [entry] = smbclient.scandir(rf"{share}\dir", **options)
    assert (entry.name, entry.is_file(), entry.smb_info.end_of_file) == ("a.txt", True, 11)
    smbclient.utime(rf"{share}\dir\a.txt", times=(1_000_000_000, 1_000_000_000), **options)
    assert smbclient.stat(rf"{share}\dir\a.txt", **options).st_mtime == 1_000_000_000
    smbclient.truncate(rf"{share}\dir\a.txt", 5, **options)
    smbclient.copyfile(rf"{share}\dir\a.txt", rf"{share}\dir\b.txt", **options)
    with smbclient.open_file(rf"{share}\dir\b.txt", mode="rb", **options) as file:
        assert file.read() == b"hello"
    smbclient.rename(rf"{share}\dir\b.txt", rf"{share}\dir\c.txt", **options)
    assert not smbclient.path.exists(rf"{share}\dir\b.txt", **options)
    assert smbclient.path.isdir(rf"{share}\dir", **options)
    smbclient.remove(rf"{share}\dir\c.txt", **options)
    smbclient.remove(rf"{share}\dir\a.txt", **options)
    smbclient.rmdir(rf"{share}\dir", **options)
    assert smbclient.listdir(share, **options) == []


def test_a_tree_is_walked_and_removed(root: tuple[str, dict[str, object]]) -> None:
    share, options = root
    smbclient.makedirs(rf"{share}\a\b\c", **options)
    for name in (r"a\1", r"a\b\2", r"a\b\c\3"):
        with smbclient.open_file(rf"{share}\{name}", mode="xb", **options) as file:
            file.write(name.encode())
    found = [
        (path.removeprefix(share), sorted(folders), sorted(files)) for path, folders, files in smbclient.walk(share, **options)
    ]
    assert found == [("", ["a"], []), ("\\a", ["b"], ["1"]), ("\\a\\b", ["c"], ["2"]), ("\\a\\b\\c", [], ["3"])]
    smbclient.shutil.rmtree(rf"{share}\a", **options)
    assert smbclient.listdir(share, **options) == []


def test_the_volume_shows_its_space(root: tuple[str, dict[str, object]]) -> None:
    share, options = root
    volume = smbclient.stat_volume(share, **options)
    assert volume.total_size > 0
    assert volume.caller_available_size <= volume.total_size
