"""NTSTATUS values, and the one table that says which of them answers which StorageError."""

from enum import IntEnum

from verditer.core.errors import Code, ErrorClass, StorageError


class Status(IntEnum):
    """The names of MS-ERREF without the prefix STATUS_."""

    SUCCESS = 0
    PENDING = 0x00000103
    NOTIFY_CLEANUP = 0x0000010B
    NOTIFY_ENUM_DIR = 0x0000010C
    BUFFER_OVERFLOW = 0x80000005
    NO_MORE_FILES = 0x80000006
    INVALID_INFO_CLASS = 0xC0000003
    INFO_LENGTH_MISMATCH = 0xC0000004
    INVALID_PARAMETER = 0xC000000D
    NO_SUCH_FILE = 0xC000000F
    INVALID_DEVICE_REQUEST = 0xC0000010
    END_OF_FILE = 0xC0000011
    MORE_PROCESSING_REQUIRED = 0xC0000016
    INVALID_VIEW_SIZE = 0xC000001F
    ACCESS_DENIED = 0xC0000022
    BUFFER_TOO_SMALL = 0xC0000023
    OBJECT_NAME_INVALID = 0xC0000033
    OBJECT_NAME_NOT_FOUND = 0xC0000034
    OBJECT_NAME_COLLISION = 0xC0000035
    OBJECT_PATH_NOT_FOUND = 0xC000003A
    OBJECT_PATH_SYNTAX_BAD = 0xC000003B
    SHARING_VIOLATION = 0xC0000043
    EAS_NOT_SUPPORTED = 0xC000004F
    NO_EAS_ON_FILE = 0xC0000052
    FILE_LOCK_CONFLICT = 0xC0000054
    LOCK_NOT_GRANTED = 0xC0000055
    DELETE_PENDING = 0xC0000056
    PRIVILEGE_NOT_HELD = 0xC0000061
    LOGON_FAILURE = 0xC000006D
    INVALID_SECURITY_DESCR = 0xC0000079
    RANGE_NOT_LOCKED = 0xC000007E
    DISK_FULL = 0xC000007F
    INSUFFICIENT_RESOURCES = 0xC000009A
    MEDIA_WRITE_PROTECTED = 0xC00000A2
    BAD_IMPERSONATION_LEVEL = 0xC00000A5
    PIPE_DISCONNECTED = 0xC00000B0
    IO_TIMEOUT = 0xC00000B5
    FILE_IS_A_DIRECTORY = 0xC00000BA
    NOT_SUPPORTED = 0xC00000BB
    NETWORK_NAME_DELETED = 0xC00000C9
    BAD_NETWORK_NAME = 0xC00000CC
    REQUEST_NOT_ACCEPTED = 0xC00000D0
    PIPE_EMPTY = 0xC00000D9
    INVALID_OPLOCK_PROTOCOL = 0xC00000E3
    INTERNAL_ERROR = 0xC00000E5
    DIRECTORY_NOT_EMPTY = 0xC0000101
    NOT_A_DIRECTORY = 0xC0000103
    TOO_MANY_OPENED_FILES = 0xC000011F
    CANCELLED = 0xC0000120
    CANNOT_DELETE = 0xC0000121
    FILE_CLOSED = 0xC0000128
    FS_DRIVER_REQUIRED = 0xC000019C
    INVALID_LOCK_RANGE = 0xC00001A1
    USER_SESSION_DELETED = 0xC0000203
    NOT_FOUND = 0xC0000225
    NOT_A_REPARSE_POINT = 0xC0000275
    REQUEST_OUT_OF_SEQUENCE = 0xC000042A
    SMB_NO_PREAUTH_INTEGRITY_HASH_OVERLAP = 0xC05D0000


class SmbError(Exception):
    """A request fails with this status. `data` is the error data of the answer, which few statuses have."""

    def __init__(self, status: Status, data: bytes = b"") -> None:
        super().__init__(status.name)
        self.status = status
        self.data = data


_BY_CODE = {
    Code.ShareNotFound: Status.NETWORK_NAME_DELETED,
    Code.ShareSnapshotNotFound: Status.OBJECT_NAME_NOT_FOUND,
    Code.ParentNotFound: Status.OBJECT_PATH_NOT_FOUND,
    Code.ResourceNotFound: Status.OBJECT_NAME_NOT_FOUND,
    Code.ResourceAlreadyExists: Status.OBJECT_NAME_COLLISION,
    Code.ResourceTypeMismatch: Status.OBJECT_NAME_COLLISION,
    Code.DirectoryNotEmpty: Status.DIRECTORY_NOT_EMPTY,
    Code.FileLockConflict: Status.FILE_LOCK_CONFLICT,
    Code.ReadOnlyAttribute: Status.ACCESS_DENIED,
    Code.SharingViolation: Status.SHARING_VIOLATION,
    Code.SMBDeletePending: Status.DELETE_PENDING,
    Code.FileLeaseIdMissing: Status.SHARING_VIOLATION,
    Code.ShareSizeLimitReached: Status.DISK_FULL,
    Code.InvalidResourceName: Status.OBJECT_NAME_INVALID,
    Code.InvalidFileOrDirectoryPathName: Status.OBJECT_NAME_INVALID,
    Code.InvalidRange: Status.INVALID_PARAMETER,
    Code.FileInvalidPermission: Status.INVALID_SECURITY_DESCR,
    Code.AccessNotGranted: Status.ACCESS_DENIED,
    Code.HiddenOrSystemAttribute: Status.ACCESS_DENIED,
    Code.SnapshotIsReadOnly: Status.MEDIA_WRITE_PROTECTED,
    Code.HandleClosed: Status.FILE_CLOSED,
    Code.CannotDeleteReadOnly: Status.CANNOT_DELETE,
    Code.EntryInUse: Status.ACCESS_DENIED,
    Code.NotADirectory: Status.NOT_A_DIRECTORY,
    Code.IsADirectory: Status.FILE_IS_A_DIRECTORY,
    Code.TooManyHandles: Status.INSUFFICIENT_RESOURCES,
    Code.ByteRangeNotGranted: Status.LOCK_NOT_GRANTED,
    Code.ByteRangeNotLocked: Status.RANGE_NOT_LOCKED,
    Code.InvalidByteRange: Status.INVALID_LOCK_RANGE,
    Code.FileTooLarge: Status.DISK_FULL,
    Code.InvalidOplockAcknowledgement: Status.INVALID_OPLOCK_PROTOCOL,
}

_BY_CLASS = {
    ErrorClass.INVALID: Status.INVALID_PARAMETER,
    ErrorClass.INVALID_RANGE: Status.INVALID_PARAMETER,
    ErrorClass.UNAUTHENTICATED: Status.ACCESS_DENIED,
    ErrorClass.FORBIDDEN: Status.ACCESS_DENIED,
    ErrorClass.NOT_FOUND: Status.OBJECT_NAME_NOT_FOUND,
    ErrorClass.NOT_ALLOWED: Status.NOT_SUPPORTED,
    ErrorClass.CONFLICT: Status.SHARING_VIOLATION,
    ErrorClass.PRECONDITION_FAILED: Status.SHARING_VIOLATION,
    ErrorClass.TOO_LARGE: Status.DISK_FULL,
    ErrorClass.TIMED_OUT: Status.IO_TIMEOUT,
    ErrorClass.OUT_OF_SPACE: Status.DISK_FULL,
    ErrorClass.NOT_IMPLEMENTED: Status.NOT_SUPPORTED,
    ErrorClass.UNAVAILABLE: Status.INSUFFICIENT_RESOURCES,
}


def status_of(error: StorageError) -> Status:
    """What a client of SMB is told instead of the error code of REST."""
    return _BY_CODE.get(error.code) or _BY_CLASS.get(error.code.error_class, Status.INTERNAL_ERROR)
