"""Requests that smbprotocol has structures for but no method: locks, SET_INFO, QUERY_INFO, IOCTL, CHANGE_NOTIFY."""

import struct
from typing import Any

from smbprotocol.file_info import FileBasicInformation, FileRenameInformation
from smbprotocol.ioctl import SMB2IOCTLRequest, SMB2IOCTLResponse
from smbprotocol.open import Open, SMB2CreateRequest, SMB2QueryInfoRequest, SMB2QueryInfoResponse, SMB2SetInfoRequest
from smbprotocol.structure import IntField, Structure

from tests.smb.lock_request import SMB2LockRequest
from tests.smb.mounted import ALL_ACCESS, OPEN, SHARE_ALL, Mounted

SHARED_LOCK, EXCLUSIVE_LOCK, UNLOCK, FAIL_IMMEDIATELY = 0x1, 0x2, 0x4, 0x10
FILE_INFORMATION, FILE_SYSTEM_INFORMATION, SECURITY_INFORMATION = 1, 2, 3


def send(handle: Open, message: Any) -> Any:
    """Send a request about an open file, and give the answer. Raises the status of the answer unless it is success."""
    connection, tree = handle.connection, handle.tree_connect
    request = connection.send(message, tree.session.session_id, tree.tree_connect_id)
    return connection.receive(request)


def put_number(message: Structure, name: str, size: int, value: int) -> None:
    """Set a field to a number that smbprotocol does not know."""
    field = IntField(size=size)
    field.structure, field.name = message, name
    field.set_value(value)
    message.fields[name] = field


def create(
    mounted: Mounted,
    name: str,
    *,
    access: int = ALL_ACCESS,
    share: int = SHARE_ALL,
    disposition: int = OPEN,
    options: int = 0,
    attributes: int = 0,
) -> None:
    """A CREATE with any numbers whatever."""
    message = SMB2CreateRequest()
    message["impersonation_level"] = 2
    for field, value in (
        ("desired_access", access),
        ("file_attributes", attributes),
        ("share_access", share),
        ("create_disposition", disposition),
        ("create_options", options),
    ):
        put_number(message, field, 4, value)
    message["buffer_path"] = name.encode("utf-16-le")
    request = mounted.connection.send(message, mounted.session.session_id, mounted.tree.tree_connect_id)
    mounted.connection.receive(request)


def start(handle: Open, message: Any) -> Any:
    """Send a request and do not wait for its answer."""
    return handle.connection.send(message, handle.tree_connect.session.session_id, handle.tree_connect.tree_connect_id)


def lock_message(handle: Open, *elements: tuple[int, int, int]) -> SMB2LockRequest:
    message = SMB2LockRequest()
    message["lock_count"] = len(elements)
    message["file_id"] = handle.file_id
    message["locks"] = b"".join(struct.pack("<QQII", offset, length, flags, 0) for offset, length, flags in elements)
    return message


def lock(handle: Open, offset: int, length: int, flags: int) -> None:
    send(handle, lock_message(handle, (offset, length, flags | FAIL_IMMEDIATELY)))


def unlock(handle: Open, offset: int, length: int) -> None:
    send(handle, lock_message(handle, (offset, length, UNLOCK)))


def set_information(handle: Open, number: int, data: bytes, kind: int = FILE_INFORMATION, additional: int = 0) -> None:
    message = SMB2SetInfoRequest()
    message["info_type"] = kind
    put_number(message, "file_info_class", 1, number)
    message["additional_information"] = additional
    message["file_id"] = handle.file_id
    message["buffer"] = data
    send(handle, message)


def query_information(
    handle: Open, number: int, kind: int = FILE_INFORMATION, max_bytes: int = 65536, additional: int = 0
) -> bytes:
    message = SMB2QueryInfoRequest()
    message["info_type"] = kind
    put_number(message, "file_info_class", 1, number)
    message["output_buffer_length"] = max_bytes
    message["additional_information"] = additional
    message["file_id"] = handle.file_id
    answer = SMB2QueryInfoResponse()
    answer.unpack(send(handle, message)["data"].get_value())
    return bytes(answer["buffer"].get_value())


def set_disposition(handle: Open, *, delete: bool) -> None:
    set_information(handle, 13, bytes([delete]))


def set_end_of_file(handle: Open, size: int) -> None:
    set_information(handle, 20, struct.pack("<Q", size))


def rename(handle: Open, name: str, *, replace: bool = False) -> None:
    information = FileRenameInformation()
    information["replace_if_exists"] = replace
    information["file_name"] = name
    set_information(handle, 10, information.pack())


def set_basic(handle: Open, **fields: Any) -> None:
    information = FileBasicInformation()
    for name, value in fields.items():
        information[name] = value
    set_information(handle, 4, information.pack())


def control(handle: Open, code: int, data: bytes = b"", max_bytes: int = 65536) -> bytes:
    message = SMB2IOCTLRequest()
    message["ctl_code"] = code
    message["file_id"] = handle.file_id
    message["max_output_response"] = max_bytes
    message["flags"] = 1
    message["buffer"] = data
    answer = SMB2IOCTLResponse()
    answer.unpack(send(handle, message)["data"].get_value())
    return bytes(answer["buffer"].get_value())
