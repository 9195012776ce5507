"""Every error a client can cause: Azure's code, its class and its message, one line each.

Services raise `StorageError(Code.…)` and name fields of their own requests. Only `rest/errors.py` and `smb/status.py`
know how a class, a field and a detail look on the wire.
"""

from dataclasses import dataclass
from enum import Enum, auto

from verditer.core.etag import Etag


class ErrorClass(Enum):
    """What kind of failure a code is; a front end has one status for each."""

    NOT_MODIFIED = auto()
    INVALID = auto()
    UNAUTHENTICATED = auto()
    FORBIDDEN = auto()
    NOT_FOUND = auto()
    NOT_ALLOWED = auto()
    CONFLICT = auto()
    LENGTH_REQUIRED = auto()
    PRECONDITION_FAILED = auto()
    TOO_LARGE = auto()
    TIMED_OUT = auto()
    UNSUPPORTED_TYPE = auto()
    INVALID_RANGE = auto()
    INTERNAL = auto()
    NOT_IMPLEMENTED = auto()
    UNAVAILABLE = auto()
    OUT_OF_SPACE = auto()


(
    NOT_MODIFIED,
    INVALID,
    UNAUTHENTICATED,
    FORBIDDEN,
    NOT_FOUND,
    NOT_ALLOWED,
    CONFLICT,
    LENGTH_REQUIRED,
    PRECONDITION_FAILED,
    TOO_LARGE,
    TIMED_OUT,
    UNSUPPORTED_TYPE,
    INVALID_RANGE,
    INTERNAL,
    NOT_IMPLEMENTED,
    UNAVAILABLE,
    OUT_OF_SPACE,
) = ErrorClass
SERVER_FAILURES = frozenset({INTERNAL, NOT_IMPLEMENTED, UNAVAILABLE, OUT_OF_SPACE})


class Code(Enum):
    """The value is (class, message). The name of a member is Azure's error code, unless a third value gives the code: two members
    with one code differ in class or message. A message names request fields in braces; a front end puts its own names there."""

    error_class: ErrorClass
    message: str
    azure_code: str

    def __new__(cls, error_class: ErrorClass, message: str, azure_code: str = "") -> "Code":
        member = object.__new__(cls)
        member._value_ = (len(cls.__members__), error_class, message)  # numbered: members with equal values would become aliases
        member.error_class = error_class
        member.message = message
        return member

    def __init__(self, error_class: ErrorClass, message: str, azure_code: str = "") -> None:
        self.azure_code = azure_code or self.name

    # fmt: off
    NotModified                         = NOT_MODIFIED, "The condition specified using HTTP conditional header(s) is not met.", "ConditionNotMet"

    AccessTierNotSupportedForBlobType   = INVALID, "The access tier is not supported for this blob type."
    BlobAccessTierNotSupportedForAccountType = INVALID, "The access tier is not supported for this account type."
    AllBatchSubRequestsShouldBeSameApi  = INVALID, "All batch subrequests should be the same api."
    BlockListTooLong                    = INVALID, "The block list may not contain more than 50,000 blocks."
    BothCrc64AndMd5HeaderPresent        = INVALID, "Both {content_crc64} header and {content_md5} header are present."
    BothUserTagsAndSourceTagsCopyPresentException = INVALID, "{tags} header and copying the source's tags are mutually exclusive."
    CommandsInBatchActOnDifferentPartitions = INVALID, "All commands in a batch must operate on same entity group."
    Crc64Mismatch                       = INVALID, "The CRC64 value specified in the request did not match with the CRC64 value calculated by the server."
    DuplicatePropertiesSpecified        = INVALID, "A property is specified more than one time."
    DuplicateTagNames                   = INVALID, "The tags specified contain duplicate names."
    EmptyMetadataKey                    = INVALID, "The key for one of the metadata key-value pairs is empty."
    EmptyTagName                        = INVALID, "The name of one of the tag key-value pairs is empty."
    EntityTooLarge                      = INVALID, "The entity is larger than the maximum allowed size (1MB)."
    ErrorProcessingQueryExpression      = INVALID, "Syntax error!"
    ExceedsMaxBatchRequestCount         = INVALID, "The batch operation exceeds maximum number of allowed subrequests."
    HierarchicalNamespaceNotEnabled     = INVALID, "The hierarchical namespace feature is not enabled for this account."
    InvalidAuthenticationInfo           = INVALID, "Authentication information is not given in the correct format. Check the value of Authorization header."
    InvalidBlobOrBlock                  = INVALID, "The specified blob or block content is invalid."
    InvalidBlockId                      = INVALID, "The specified block ID is invalid. The block ID must be Base64-encoded."
    FileInvalidPermission               = INVALID, "The permission is not a valid security descriptor.", "InvalidHeaderValue"
    InvalidBlockList                    = INVALID, "The specified block list is invalid."
    InvalidDuplicateRow                 = INVALID, "The batch request contains multiple changes with same row key. An entity can appear only once in a batch request."
    InvalidFileOrDirectoryPathName      = INVALID, "File or directory path is too long."
    InvalidHeaderValue                  = INVALID, "The value for one of the HTTP headers is not in the correct format."
    InvalidInput                        = INVALID, "One of the request inputs is not valid."
    InvalidMarker                       = INVALID, "The marker specified in the request is not valid."
    InvalidMd5                          = INVALID, "The MD5 value specified in the request is invalid. MD5 value must be 128 bits and base64 encoded."
    InvalidMetadata                     = INVALID, "The metadata specified is invalid. It has characters that are not permitted."
    InvalidQueryParameterValue          = INVALID, "Value for one of the query parameters specified in the request URI is invalid."
    InvalidResourceName                 = INVALID, "The specified resource name contains invalid characters."
    InvalidTag                          = INVALID, "The tags specified are invalid. It contains characters that are not permitted."
    InvalidUri                          = INVALID, "The requested URI does not represent any resource on the server."
    InvalidXmlDocument                  = INVALID, "XML specified is not syntactically valid."
    InvalidXmlNodeValue                 = INVALID, "The value for one of the XML nodes is not in the correct format."
    KeyValueTooLarge                    = INVALID, "The value specified for the key property is larger than the maximum allowed size."
    Md5Mismatch                         = INVALID, "The MD5 value specified in the request did not match with the MD5 value calculated by the server."
    MetadataTooLarge                    = INVALID, "The metadata specified exceeds the maximum allowed limit (8KB)."
    MissingRequiredHeader               = INVALID, "An HTTP header that's mandatory for this request is not specified."
    MissingRequiredQueryParameter       = INVALID, "A query parameter that's mandatory for this request is not specified."
    MissingRequiredXmlNode              = INVALID, "An XML node that's required is not specified in the request body."
    MultipleConditionHeadersNotSupported = INVALID, "Multiple condition headers are not supported."
    MutuallyExclusiveQueryParameters    = INVALID, "Two or more query parameters specified in the request URI are mutually exclusive."
    OutOfRangeInput                     = INVALID, "One of the request inputs is out of range."
    OutOfRangeQueryParameterValue       = INVALID, "One of the query parameters specified in the request URI is outside the permissible range."
    PreviousSnapshotCannotBeNewer       = INVALID, "The prevsnapshot query parameter value cannot be newer than snapshot query parameter value."
    PropertiesNeedValue                 = INVALID, "The values are not specified for all properties in the entity."
    PropertyNameInvalid                 = INVALID, "The property name is invalid."
    PropertyNameTooLong                 = INVALID, "The property name exceeds the maximum allowed length (255)."
    PropertyValueTooLarge               = INVALID, "The property value exceeds the maximum allowed size (64KB)."
    TagsTooLarge                        = INVALID, "The tags specified exceed the maximum allowed limit."
    TooManyProperties                   = INVALID, "The entity contains more properties than allowed. Each entity can include up to 252 properties to store data."
    UnsatisfiableCondition              = INVALID, "The request includes an unsatisfiable condition for this operation."
    UnsupportedHeader                   = INVALID, "One of the HTTP headers specified in the request is not supported."
    XMethodIncorrectValue               = INVALID, "The specified X-HTTP-Method value is invalid."
    XMethodIncorrectCount               = INVALID, "More than one X-HTTP-Method is specified."
    XMethodNotUsingPost                 = INVALID, "The request uses X-HTTP-Method with an Http verb other than POST."

    InvalidToken                        = UNAUTHENTICATED, "Server failed to authenticate the request. Please refer to the information in the www-authenticate header.", "InvalidAuthenticationInfo"
    NoAuthenticationInformation         = UNAUTHENTICATED, "Server failed to authenticate the request. Please refer to the information in the www-authenticate header."

    AuthenticationFailed                = FORBIDDEN, "Server failed to authenticate the request. Make sure the value of Authorization header is formed correctly including the signature."
    ShareSizeLimitReached               = FORBIDDEN, "The specified share is full."
    AuthorizationFailure                = FORBIDDEN, "This request is not authorized to perform this operation."
    AuthorizationPermissionMismatch     = FORBIDDEN, "This request is not authorized to perform this operation using this permission."
    AuthorizationProtocolMismatch       = FORBIDDEN, "This request is not authorized to perform this operation using this protocol."
    AuthorizationResourceTypeMismatch   = FORBIDDEN, "This request is not authorized to perform this operation using this resource type."
    AuthorizationServiceMismatch        = FORBIDDEN, "This request is not authorized to perform this operation using this service."
    AuthorizationSourceIPMismatch       = FORBIDDEN, "This request is not authorized to perform this operation using this source IP."
    CorsPreflightFailure                = FORBIDDEN, "CORS not enabled or no matching rule found for this request."
    InsufficientAccountPermissions      = FORBIDDEN, "The account being accessed does not have sufficient permissions to execute this operation. Write operations are not allowed."
    OperationNotAllowedOnRootBlob       = FORBIDDEN, "The specified operation is not allowed on a root blob."
    UnauthorizedBlobOverwrite           = FORBIDDEN, "This request is not authorized to perform blob overwrites."

    BlobNotFound                        = NOT_FOUND, "The specified blob does not exist."
    CannotVerifyCopySource              = NOT_FOUND, "Could not verify the copy source within the specified time."
    FilePermissionNotFound              = NOT_FOUND, "The specified file permission does not exist.", "ResourceNotFound"
    ParentNotFound                      = NOT_FOUND, "The specified parent path does not exist."
    ShareNotFound                       = NOT_FOUND, "The specified share does not exist."
    ShareSnapshotNotFound               = NOT_FOUND, "The specified share snapshot does not exist."
    ContainerNotFound                   = NOT_FOUND, "The specified container does not exist."
    MessageNotFound                     = NOT_FOUND, "The specified message does not exist."
    QueueNotFound                       = NOT_FOUND, "The specified queue does not exist."
    ResourceNotFound                    = NOT_FOUND, "The specified resource does not exist."
    TableNotFound                       = NOT_FOUND, "The table specified does not exist."
    WebContentNotFound                  = NOT_FOUND, "The requested content does not exist."

    MethodNotAllowed                    = NOT_ALLOWED, "The requested method is not allowed on the specified resource."
    UnsupportedHttpVerb                 = NOT_ALLOWED, "The resource doesn't support specified Http Verb."

    DirectoryNotEmpty                   = CONFLICT, "The specified directory is not empty."
    FileLockConflict                    = CONFLICT, "A portion of the specified file is locked by an SMB client."
    ReadOnlyAttribute                   = CONFLICT, "The specified resource is read-only and cannot be modified at this time."
    ResourceAlreadyExists               = CONFLICT, "The specified resource already exists."
    ResourceTypeMismatch                = CONFLICT, "The specified resource type does not match the type of the existing resource."
    ShareAlreadyExists                  = CONFLICT, "The specified share already exists."
    ShareHasSnapshots                   = CONFLICT, "The share has snapshots and the operation requires no snapshots."
    ShareSnapshotCountExceeded          = CONFLICT, "The total number of snapshots for the share is over the limit."
    SharingViolation                    = CONFLICT, "The specified resource may be in use by an SMB client."
    SMBDeletePending                    = CONFLICT, "The specified resource is marked for deletion by an SMB client."

    # Of open handles: only SMB clients have them, so no REST request meets these.
    AccessNotGranted                    = FORBIDDEN, "The handle was not opened with the access that the operation needs."
    HiddenOrSystemAttribute             = FORBIDDEN, "A hidden or system file is overwritten only by one with the same attributes."
    SnapshotIsReadOnly                  = FORBIDDEN, "A share snapshot cannot be modified."
    HandleClosed                        = NOT_FOUND, "The handle has been closed."
    CannotDeleteReadOnly                = CONFLICT, "A read-only file cannot be deleted."
    EntryInUse                          = CONFLICT, "The file or directory, or something below it, is open."
    NotADirectory                       = CONFLICT, "The specified entry is a file."
    IsADirectory                        = CONFLICT, "The specified entry is a directory."
    TooManyHandles                      = CONFLICT, "The file or directory has too many open handles."
    ByteRangeNotGranted                 = CONFLICT, "A byte-range lock conflicts with another."
    ByteRangeNotLocked                  = CONFLICT, "The handle does not hold a lock on exactly this byte range."
    InvalidByteRange                    = INVALID, "A byte range ends beyond the largest offset."
    FileTooLarge                        = INVALID, "The file would be larger than the largest file."
    InvalidOplockAcknowledgement        = INVALID, "The handle has no break of its oplock to acknowledge, or not to this level."

    BlobAlreadyExists                   = CONFLICT, "The specified blob already exists."
    BlobArchived                        = CONFLICT, "This operation is not permitted on an archived blob."
    BlobBeingRehydrated                 = CONFLICT, "This operation is not permitted because the blob is being rehydrated."
    BlobDoesNotUseCustomerSpecifiedEncryption = CONFLICT, "The blob is not encrypted with customer specified encryption, but it was provided in the request."
    BlobImmutableDueToLegalHold         = CONFLICT, "This operation is not permitted as the blob is immutable due to one or more legal holds."
    BlobImmutableDueToPolicy            = CONFLICT, "This operation is not permitted as the blob is immutable due to a policy."
    BlobUsesCustomerSpecifiedEncryption = CONFLICT, "The blob is encrypted with customer specified encryption, but it was not provided in the request."
    ContainerHasLegalHold               = CONFLICT, "The requested operation is not allowed as the container has one or more legal holds."
    ContainerImmutabilityPolicyLocked   = CONFLICT, "The requested operation is not allowed as the container has a locked immutability policy."
    ContainerImmutableStorageWithVersioningEnabled = CONFLICT, "The requested operation is not allowed as the container has a immutable storage with versioning enabled."
    ContainerImmutableDueToPolicy       = CONFLICT, "This operation is not permitted as the container is immutable due to a policy."
    EncryptionScopeNotFound             = NOT_FOUND, "The specified encryption scope does not exist."
    BlobOperationNotSupported           = CONFLICT, "Version level immutability is not enabled for the container."
    IncrementalCopyBlobMismatch         = CONFLICT, "The specified source blob is different than the copy source of the existing incremental copy blob."
    IncrementalCopyOfEarlierSnapshotNotAllowed = CONFLICT, "The specified snapshot is earlier than the last snapshot copied into the incremental copy blob."
    IncrementalCopySourceMustBeSnapshot = CONFLICT, "The source for incremental copy request must be a snapshot."
    InvalidSourceBlobType               = CONFLICT, "The copy source blob type is invalid for this operation."
    OperationNotAllowedOnIncrementalCopyBlob = CONFLICT, "The specified operation is not allowed on an incremental copy blob."
    RequestForbiddenByContainerEncryptionPolicy = CONFLICT, "The request is forbidden by the encryption policy of the container."
    BlobIsSealed                        = CONFLICT, "The blob is sealed and its contents cannot be modified."
    BlobOverwritten                     = CONFLICT, "The blob has been recreated since the previous snapshot was taken."
    BlobSnapshotNotSoftDeleted          = CONFLICT, "The blob snapshot or version has to be soft-deleted before it can be deleted permanently."
    BlobTierInadequateForContentLength  = CONFLICT, "The specified blob tier size limit cannot be less than content length."
    BlockCountExceedsLimit              = CONFLICT, "The uncommitted block count cannot exceed the maximum limit of 100,000 blocks."
    CannotChangeToLowerTier             = CONFLICT, "A higher blob tier has already been explicitly set."
    CopySourceNotBlockBlob              = CONFLICT, "The copy source must be a block blob.", "CannotVerifyCopySource"
    CopyIdMismatch                      = CONFLICT, "The specified copy ID did not match the copy ID for the pending copy operation."
    ContainerAlreadyExists              = CONFLICT, "The specified container already exists."
    EntityAlreadyExists                 = CONFLICT, "The specified entity already exists."
    InvalidBlobType                     = CONFLICT, "The blob type is invalid for this operation."
    LeaseAlreadyPresent                 = CONFLICT, "There is already a lease present."
    LeaseIdMismatchWithLeaseOperation   = CONFLICT, "The lease ID specified did not match the lease ID for the blob."
    LeaseIsBreakingAndCannotBeAcquired  = CONFLICT, "The lease ID matched, but the lease is currently in breaking state and cannot be acquired until it is broken."
    LeaseIsBreakingAndCannotBeChanged   = CONFLICT, "The lease ID matched, but the lease is currently in breaking state and cannot be changed."
    LeaseIsBrokenAndCannotBeRenewed     = CONFLICT, "The lease ID matched, but the lease has been broken explicitly and cannot be renewed."
    LeaseNotPresentWithLeaseOperation   = CONFLICT, "There is currently no lease on the blob."
    NoPendingCopyOperation              = CONFLICT, "There is currently no pending copy operation."
    PendingCopyOperation                = CONFLICT, "There is currently a pending copy operation."
    PreviousSnapshotNotFound            = CONFLICT, "The previous snapshot is not found."
    PublicAccessNotPermitted            = CONFLICT, "Public access is not permitted on this storage account."
    QueueAlreadyExists                  = CONFLICT, "The specified queue already exists."
    SequenceNumberIncrementTooLarge     = CONFLICT, "The sequence number increment cannot be performed because it would result in overflow of the sequence number."
    SnapshotsPresent                    = CONFLICT, "This operation is not permitted because the blob has snapshots."
    TableAlreadyExists                  = CONFLICT, "The table specified already exists."

    MissingContentLengthHeader          = LENGTH_REQUIRED, "The content length for the request was not specified."

    AppendPositionConditionNotMet       = PRECONDITION_FAILED, "The append position condition specified was not met."
    ConditionNotMet                     = PRECONDITION_FAILED, "The condition specified using HTTP conditional header(s) is not met."
    InfiniteLeaseDurationRequired       = PRECONDITION_FAILED, "The lease ID matched, but the specified lease must be an infinite-duration lease."
    LeaseIdMismatchWithBlobOperation    = PRECONDITION_FAILED, "The lease ID specified did not match the lease ID for the blob."
    FileLeaseIdMissing                  = PRECONDITION_FAILED, "There is currently a lease on the file and no lease ID was specified in the request.", "LeaseIdMissing"
    LeaseIdMismatchWithFileOperation    = PRECONDITION_FAILED, "The lease ID specified did not match the lease ID for the file."
    LeaseNotPresentWithFileOperation    = PRECONDITION_FAILED, "There is currently no lease on the file."
    ShareLeaseIdMissing                 = PRECONDITION_FAILED, "There is currently a lease on the file share and no lease ID was specified in the request.", "LeaseIdMissing"
    ShareLeaseIdMismatch                = PRECONDITION_FAILED, "The lease ID specified did not match the lease ID for the file share.", "LeaseIdMismatchWithContainerOperation"
    ShareLeaseNotPresent                = PRECONDITION_FAILED, "There is currently no lease on the file share.", "LeaseNotPresentWithContainerOperation"
    LeaseIdMismatchWithContainerOperation = PRECONDITION_FAILED, "The lease ID specified did not match the lease ID for the container."
    LeaseIdMissing                      = PRECONDITION_FAILED, "There is currently a lease on the blob and no lease ID was specified in the request."
    ContainerLeaseIdMissing             = PRECONDITION_FAILED, "There is currently a lease on the container and no lease ID was specified in the request.", "LeaseIdMissing"
    LeaseLost                           = PRECONDITION_FAILED, "A lease ID was specified, but the lease for the blob has expired."
    ContainerLeaseLost                  = PRECONDITION_FAILED, "A lease ID was specified, but the lease for the container has expired.", "LeaseLost"
    LeaseNotPresentWithBlobOperation    = PRECONDITION_FAILED, "There is currently no lease on the blob."
    LeaseNotPresentWithContainerOperation = PRECONDITION_FAILED, "There is currently no lease on the container."
    MaxBlobSizeConditionNotMet          = PRECONDITION_FAILED, "The max blob size condition specified was not met."
    SequenceNumberConditionNotMet       = PRECONDITION_FAILED, "The sequence number condition specified was not met."
    SourceConditionNotMet               = PRECONDITION_FAILED, "The source condition specified using HTTP conditional header(s) is not met."
    TargetConditionNotMet               = PRECONDITION_FAILED, "The target condition specified using HTTP conditional header(s) is not met."
    UpdateConditionNotSatisfied         = PRECONDITION_FAILED, "The update condition specified in the request was not satisfied."

    ClientCacheFlushDelay               = TIMED_OUT, "The specified resource state could not be flushed from an SMB client in the specified time."
    RequestBodyTooLarge                 = TOO_LARGE, "The request body is too large and exceeds the maximum permissible limit."
    AtomFormatNotSupported              = UNSUPPORTED_TYPE, "Atom format is not supported."
    JsonVerboseFormatNotSupported       = UNSUPPORTED_TYPE, "JSON Verbose format is not supported."
    MediaTypeNotSupported               = UNSUPPORTED_TYPE, "None of the provided media types are supported"
    InvalidRange                        = INVALID_RANGE, "The range specified is invalid for the current size of the resource."
    InvalidPageRange                    = INVALID_RANGE, "The page range specified is invalid."

    InternalError                       = INTERNAL, "The server encountered an internal error. Please retry the request."
    OperationTimedOut                   = INTERNAL, "The operation could not be completed within the permitted time."
    InsufficientStorage                 = OUT_OF_SPACE, "The server has no space left to store the request body. Nothing was written."
    NotImplemented                      = NOT_IMPLEMENTED, "The requested operation is not implemented on the specified resource."
    ServerBusy                          = UNAVAILABLE, "The server is currently unable to receive requests. Please retry your request."
    # fmt: on


@dataclass(frozen=True, slots=True)
class Limit:
    """The most that is allowed: bytes of a body, of a blob."""

    maximum: int


@dataclass(frozen=True, slots=True)
class Bounds:
    """Between which values a field has to be, both included."""

    minimum: int
    maximum: int


@dataclass(frozen=True, slots=True)
class Digests:
    """The checksum that the client sent and the one of the bytes that arrived."""

    specified: bytes
    calculated: bytes


@dataclass(frozen=True, slots=True)
class CurrentVersion:
    """The version that a conditional read found unchanged."""

    etag: Etag


@dataclass(frozen=True, slots=True)
class ResourceSize:
    """The size of the resource that a range does not fit."""

    size_bytes: int


@dataclass(frozen=True, slots=True)
class TokenIssuer:
    """Where a caller without credentials can ask for a bearer token."""

    authorization_uri: str


@dataclass(frozen=True, slots=True)
class SourceRefusal:
    """Why a copy source could not be read: a class when it is a blob of this server, otherwise the status another server gave."""

    status: ErrorClass | int
    code: str
    message: str


Details = Limit | Bounds | Digests | CurrentVersion | ResourceSize | TokenIssuer | SourceRefusal


class StorageError(Exception):
    """A request that cannot be served.

    `field` is the name of the request field that is wrong and `value` what it said; `reason` says what is wrong with it, and names
    other fields in braces. `message` replaces the message of the code and is shown as it is.
    """

    def __init__(
        self,
        code: Code,
        *,
        field: str = "",
        value: str | int | None = None,
        reason: str = "",
        message: str = "",
        details: Details | None = None,
    ):
        super().__init__(code.azure_code)
        self.code = code
        self.field = field
        self.value = value
        self.reason = reason
        self.message = message or code.message
        self.details = details
