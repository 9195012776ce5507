"""Valid requests of every command, and random changes of them. A failing run prints its seed; `VERDITER_SMB_SEED` repeats it, and
`VERDITER_SMB_ROUNDS` makes it longer."""

import os
import random
import struct

from tests.smb.raw import (
    ALL_ONES,
    CHANGE_NOTIFY,
    CLOSE,
    CREATE,
    ECHO,
    EMPTY,
    FLUSH,
    IOCTL,
    LOCK,
    QUERY_DIRECTORY,
    QUERY_INFO,
    READ,
    SET_INFO,
    TREE_CONNECT,
    WRITE,
    close_body,
    create_body,
)

SEED = int(os.environ.get("VERDITER_SMB_SEED", random.randrange(1 << 32)))
ROUNDS = int(os.environ.get("VERDITER_SMB_ROUNDS", "400"))
EDGES = (0, 1, 7, 8, 0x7F, 0xFF, 0x100, 0x7FFF, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)


def changed(chance: random.Random, data: bytes) -> bytes:
    """With a few fields overwritten, or cut, or longer."""
    changed = bytearray(data)
    for _ in range(chance.randrange(1, 4)):
        kind = chance.randrange(4)
        at = chance.randrange(max(1, len(changed)))
        if kind == 0 and changed:
            changed[at] = chance.randrange(256)
        elif kind == 1 and changed:
            size = chance.choice((1, 2, 4, 8))
            value = chance.choice(EDGES) if size < 8 else chance.choice((*EDGES, (1 << 63) - 1, (1 << 64) - 1))
            changed[at : at + size] = (value & ((1 << 8 * size) - 1)).to_bytes(size, "little")
        elif kind == 2:
            del changed[at:]
        else:
            changed += chance.randbytes(chance.randrange(64))
    return bytes(changed)


def bodies(file_id: bytes, directory: bytes) -> list[tuple[int, bytes]]:
    """A valid body of every command, with contexts and buffers where it can have them."""
    name = "file".encode("utf-16-le")
    context = struct.pack("<IHHHHI", 0, 16, 4, 0, 24, 8) + b"AlSi" + bytes(4) + bytes(8)
    with_context = (
        struct.pack("<HBBIQQIIIIIHHII", 57, 0, 9, 2, 0, 0, 0x12019F, 0, 7, 3, 0, 120, len(name), 128, len(context)) + name
    )
    rename = struct.pack("<B7xQI", 1, 0, 8) + "new!".encode("utf-16-le")
    chunks = file_id + bytes(8) + struct.pack("<II", 1, 0) + struct.pack("<QQII", 0, 0, 10, 0)
    fsctls = (0x00140078, 0x000900C4, 0x000980C8, 0x000940CF, 0x00144064, 0x000900C0, 0x00060194)
    return [
        (CREATE, create_body("folder\\..\\file:x")),
        (CREATE, with_context + context),
        (CREATE, create_body("file", disposition=1)),
        (CLOSE, close_body(ALL_ONES)),
        (FLUSH, struct.pack("<HHI16s", 24, 0, 0, file_id)),
        (READ, struct.pack("<HBBIQ16sIIIHH", 49, 0, 0, 100, 0, file_id, 0, 0, 0, 0, 0) + b"\0"),
        (WRITE, struct.pack("<HHIQ16sIIHHI", 49, 112, 9, 0, file_id, 0, 0, 0, 0, 0) + b"some data"),
        (LOCK, struct.pack("<HHI16s", 48, 1, 0, file_id) + struct.pack("<QQII", 0, 10, 0x12, 0)),
        (IOCTL, struct.pack("<HHI16sIIIIIIII", 57, 0, 0x001440F2, file_id, 120, len(chunks), 0, 0, 0, 100, 1, 0) + chunks),
        *((IOCTL, struct.pack("<HHI16sIIIIIIII", 57, 0, c, file_id, 120, 16, 0, 0, 0, 99, 1, 0) + bytes(16)) for c in fsctls),
        (QUERY_DIRECTORY, struct.pack("<HBBI16sHHI", 33, 37, 1, 0, directory, 96, 2, 4096) + "*".encode("utf-16-le")),
        (CHANGE_NOTIFY, struct.pack("<HHI16sII", 32, 0, 4096, directory, 3, 0)),
        *((QUERY_INFO, _query(file_id, kind, number)) for kind in (1, 2, 3) for number in (4, 5, 18, 22)),
        (SET_INFO, struct.pack("<HBBIHHI16s", 33, 1, 10, len(rename), 96, 0, 0, file_id) + rename),
        *((SET_INFO, _set(file_id, kind, number)) for kind, number in ((1, 4), (1, 13), (1, 20), (3, 0))),
        (TREE_CONNECT, struct.pack("<HHHH", 9, 0, 72, 12) + "\\\\a\\b\\".encode("utf-16-le")),
        (ECHO, EMPTY),
    ]


def _query(file_id: bytes, kind: int, number: int) -> bytes:
    return struct.pack("<HBBIHHIII16s", 41, kind, number, 999, 0, 0, 7, 0, 0, file_id) + b"\0"


def _set(file_id: bytes, kind: int, number: int) -> bytes:
    return struct.pack("<HBBIHHI16s", 33, kind, number, 40, 96, 0, 7, file_id) + bytes(40)
