"""Telling those who watch a directory what an SMB client has changed in it. The bits are those of MS-SMB2 2.2.35."""

from typing import Final

from verditer.core.names import FilePath
from verditer.core.records.file import FileEntry
from verditer.core.records.file_open import DirectoryWatch
from verditer.core.records.record import span_of
from verditer.partition.engine import Transaction
from verditer.services.file.handles.handle import NotifyAction
from verditer.services.file.handles.processes.signals import Outbox, SignalKind

ADDED, REMOVED, MODIFIED = NotifyAction.ADDED, NotifyAction.REMOVED, NotifyAction.MODIFIED
OLD_NAME, NEW_NAME = NotifyAction.RENAMED_OLD_NAME, NotifyAction.RENAMED_NEW_NAME

FILE_NAME: Final = 0x1
DIRECTORY_NAME: Final = 0x2
ATTRIBUTES: Final = 0x4
SIZE: Final = 0x8
LAST_WRITE: Final = 0x10
LAST_ACCESS: Final = 0x20
CREATION: Final = 0x40
SECURITY: Final = 0x100


def name_filter(entry: FileEntry) -> int:
    return DIRECTORY_NAME if entry.is_directory else FILE_NAME


def tell_watchers(tx: Transaction, outbox: Outbox, share_id: int, path: FilePath, action: int, changed: int) -> None:
    """Tell every watch whose directory is above the path and whose filter has one of the bits `changed`."""
    for watch in tx.scan(DirectoryWatch, span_of(share_id)):
        depth = len(watch.folded_path)
        is_above = depth < len(path.folded) and path.folded[:depth] == watch.folded_path
        if is_above and watch.filter & changed and (watch.is_deep or depth == len(path.folded) - 1):
            outbox.send(watch.owner, watch.handle_id, SignalKind.CHANGED, action=action, names=path.names[depth:])
