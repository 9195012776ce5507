"""The table of SMB2 commands: start reading here. A row says how long the fixed part of a request is, what has to exist before
the request, and which function answers it on a share and on IPC$."""

import struct
from collections.abc import Callable
from typing import NamedTuple

from verditer.smb.call import CommandHandler, Needs
from verditer.smb.handlers import create, data, directory, lock, notify, oplock, query_info, set_info
from verditer.smb.ioctls import ioctl
from verditer.smb.pipes import commands as pipes
from verditer.smb.setup import login, negotiate, trees
from verditer.smb.wire.header import HEADER_BYTES, CommandNumber

Payload = Callable[[memoryview], int]


class Command(NamedTuple):
    """`request_size` is the StructureSize. `file_id_at` is the offset of the file id in the message. `payload` gives how many
    bytes a request moves, which its credits have to pay for. Without `pipe_handler` the command does not exist on IPC$."""

    number: int
    name: str
    request_size: int
    needs: Needs
    handler: CommandHandler
    pipe_handler: CommandHandler | None = None
    file_id_at: int = 0
    payload: Payload | None = None


def _length_at(at: int) -> Payload:
    """The length is in one field, so many bytes behind the header."""
    layout, start = struct.Struct("<I"), HEADER_BYTES + at
    return lambda message: int(layout.unpack_from(message, start)[0])


def _ioctl_payload(message: memoryview) -> int:
    """The input and output of an IOCTL, or the room for its answers, whichever is more."""
    input_bytes, max_input, _, output_bytes, max_output = _IOCTL_LENGTHS.unpack_from(message, HEADER_BYTES + 28)
    return int(max(input_bytes + output_bytes, max_input + max_output))


_IOCTL_LENGTHS = struct.Struct("<IIIII")
NOTHING, SESSION, TREE, HANDLE = Needs

_ROWS = (
    Command(CommandNumber.NEGOTIATE, "Negotiate", 36, NOTHING, negotiate.negotiate),
    Command(CommandNumber.SESSION_SETUP, "SessionSetup", 25, NOTHING, login.session_setup),
    Command(CommandNumber.LOGOFF, "Logoff", 4, SESSION, login.logoff),
    Command(CommandNumber.TREE_CONNECT, "TreeConnect", 9, SESSION, trees.tree_connect),
    Command(CommandNumber.TREE_DISCONNECT, "TreeDisconnect", 4, TREE, trees.tree_disconnect, trees.tree_disconnect),
    Command(CommandNumber.CREATE, "Create", 57, TREE, create.create, pipes.create),
    Command(CommandNumber.CLOSE, "Close", 24, HANDLE, data.close_file, pipes.close, 72),
    Command(CommandNumber.FLUSH, "Flush", 24, HANDLE, data.flush_file, None, 72),
    Command(CommandNumber.READ, "Read", 49, HANDLE, data.read_file, pipes.read, 80, _length_at(4)),
    Command(CommandNumber.WRITE, "Write", 49, HANDLE, data.write_file, pipes.write, 80, _length_at(4)),
    Command(CommandNumber.LOCK, "Lock", 48, HANDLE, lock.lock_ranges, None, 72),
    Command(CommandNumber.IOCTL, "Ioctl", 57, TREE, ioctl, ioctl, 0, _ioctl_payload),
    Command(CommandNumber.ECHO, "Echo", 4, NOTHING, login.echo),
    Command(CommandNumber.QUERY_DIRECTORY, "QueryDirectory", 33, HANDLE, directory.query_directory, None, 72, _length_at(28)),
    Command(CommandNumber.CHANGE_NOTIFY, "ChangeNotify", 32, HANDLE, notify.change_notify, None, 72, _length_at(4)),
    Command(CommandNumber.QUERY_INFO, "QueryInfo", 41, HANDLE, query_info.query_info, pipes.query_info, 88, _length_at(4)),
    Command(CommandNumber.SET_INFO, "SetInfo", 33, HANDLE, set_info.set_info, None, 80, _length_at(4)),
    Command(CommandNumber.OPLOCK_BREAK, "OplockBreak", 24, HANDLE, oplock.oplock_break, None, 72),
)
COMMANDS = {row.number: row for row in _ROWS}
