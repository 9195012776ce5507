"""Files that an SMB client and an SDK share: bytes, sizes, names, times and attributes are the same for both, at once."""

import pytest
from azure.storage.fileshare import ContentSettings, ShareClient, ShareFileClient

from tests.smb.mounted import (
    ALL_ACCESS,
    CREATE,
    DELETE,
    DELETE_ON_CLOSE,
    OVERWRITE_IF,
    READ_ATTRIBUTES,
    WRITE_DATA,
    Mounted,
    refused,
)
from tests.smb.requests import set_end_of_file
from tests.smb.test_interplay import SHARING, answer
from verditer.smb.status import Status


@pytest.fixture
def file(mounted: Mounted, sdk: ShareClient) -> ShareFileClient:
    mounted.put("file", b"12345")
    return sdk.get_file_client("file")


def test_bytes_written_over_smb_are_read_over_rest_at_once(mounted: Mounted, file: ShareFileClient) -> None:  # contract F5
    handle = mounted.open("file")
    for number in range(20):
        data = bytes([number]) * 100
        handle.write(data, number * 100)
        assert file.download_file(number * 100, 100).readall() == data
        assert file.get_file_properties().size == (number + 1) * 100
    handle.close()


def test_bytes_written_over_rest_are_read_over_smb_at_once(mounted: Mounted, file: ShareFileClient) -> None:  # contract F5
    file.resize_file(2000)
    handle = mounted.open("file")
    for number in range(20):
        data = bytes([number]) * 100
        file.upload_range(data, number * 100, 100)
        assert handle.read(number * 100, 100) == data
    handle.close()


def test_names_sizes_and_times_are_the_same_in_both_protocols(
    mounted: Mounted, sdk: ShareClient, file: ShareFileClient
) -> None:  # contract F5
    handle = mounted.open("file")
    set_end_of_file(handle, 12345)
    handle.close()
    properties = file.get_file_properties()
    assert properties.size == 12345
    again = mounted.open("FILE", READ_ATTRIBUTES)
    assert again.end_of_file == 12345
    assert again.creation_time == properties.creation_time
    assert again.last_write_time == properties.last_write_time
    assert again.change_time == properties.change_time
    again.close()
    renamed = file.rename_file("Renamed.TXT")
    assert mounted.get("renamed.txt") == renamed.download_file().readall()
    with refused(Status.OBJECT_NAME_NOT_FOUND):
        mounted.open("file")
    sdk.create_directory("made by rest")
    mounted.put("made by rest\\inner", b"x")
    assert sdk.get_file_client("made by rest/inner").download_file().readall() == b"x"


def test_a_new_file_over_smb_has_the_properties_of_a_new_file(mounted: Mounted, sdk: ShareClient) -> None:  # contract F5
    mounted.open("new", ALL_ACCESS, disposition=CREATE).close()
    properties = sdk.get_file_client("new").get_file_properties()
    assert properties.content_settings.content_type == "application/octet-stream"
    assert properties.size == 0
    assert "Archive" in str(properties.file_attributes)
    mounted.open("new", ALL_ACCESS, disposition=OVERWRITE_IF).close()
    assert sdk.get_file_client("new").get_file_properties().etag != properties.etag


def test_a_read_only_file_is_read_only_for_both(mounted: Mounted, sdk: ShareClient, file: ShareFileClient) -> None:  # contract F2
    file.set_http_headers(ContentSettings(), file_attributes="ReadOnly")
    with refused(Status.ACCESS_DENIED):
        mounted.open("file", WRITE_DATA)
    with refused(Status.CANNOT_DELETE):
        mounted.open("file", DELETE, options=DELETE_ON_CLOSE)
    assert answer(lambda: file.upload_range(b"abc", 0, 3)) == "ReadOnlyAttribute"
    file.set_http_headers(ContentSettings(), file_attributes="Archive")
    mounted.open("file", WRITE_DATA).close()


def test_a_directory_with_an_open_file_is_not_renamed(mounted: Mounted, sdk: ShareClient) -> None:  # contract F2
    directory = sdk.create_directory("dir")
    handle = mounted.make("dir\\file")
    assert answer(lambda: directory.rename_directory("other")) == SHARING
    handle.close()
    renamed = directory.rename_directory("other")
    assert mounted.get("other\\file") == b""
    open_directory = mounted.open("other", READ_ATTRIBUTES)
    sdk.get_file_client("other/file").delete_file()
    assert answer(renamed.delete_directory) == SHARING
    open_directory.close()
    renamed.delete_directory()
