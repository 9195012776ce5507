"""Every error a client can cause: Azure's code, HTTP status and message, one line each.

Services raise `StorageError(Code.…)`; only `rest/errors.py` (and later `smb/status.py`) knows how a code looks on the wire.
"""

from base64 import b64encode
from enum import Enum


class Code(Enum):
    """The value is (status, message); the name is Azure's error code. `wire` differs where two lines share one code."""

    status: int
    message: str
    wire: str

    def __new__(cls, status: int, message: str, wire: str = "") -> "Code":
        member = object.__new__(cls)
        member._value_ = (len(cls.__members__), status, message)  # numbered, so look-alikes stay distinct members
        member.status = status
        member.message = message
        member.wire = wire
        return member

    def __init__(self, status: int, message: str, wire: str = "") -> None:
        self.wire = wire or self.name

    # fmt: off
    NotModified                         = 304, "The condition specified using HTTP conditional header(s) is not met.", "ConditionNotMet"

    AccessTierNotSupportedForBlobType   = 400, "The access tier is not supported for this blob type."
    BlobAccessTierNotSupportedForAccountType = 400, "The access tier is not supported for this account type."
    AllBatchSubRequestsShouldBeSameApi  = 400, "All batch subrequests should be the same api."
    BlockListTooLong                    = 400, "The block list may not contain more than 50,000 blocks."
    BothCrc64AndMd5HeaderPresent        = 400, "Both x-ms-content-crc64 header and Content-MD5 header are present."
    BothUserTagsAndSourceTagsCopyPresentException = 400, "x-ms-tags header and copying the source's tags are mutually exclusive."
    CommandsInBatchActOnDifferentPartitions = 400, "All commands in a batch must operate on same entity group."
    Crc64Mismatch                       = 400, "The CRC64 value specified in the request did not match with the CRC64 value calculated by the server."
    DuplicatePropertiesSpecified        = 400, "A property is specified more than one time."
    DuplicateTagNames                   = 400, "The tags specified contain duplicate names."
    EmptyMetadataKey                    = 400, "The key for one of the metadata key-value pairs is empty."
    EmptyTagName                        = 400, "The name of one of the tag key-value pairs is empty."
    EntityTooLarge                      = 400, "The entity is larger than the maximum allowed size (1MB)."
    ExceedsMaxBatchRequestCount         = 400, "The batch operation exceeds maximum number of allowed subrequests."
    InvalidAuthenticationInfo           = 400, "Authentication information is not given in the correct format. Check the value of Authorization header."
    InvalidBlobOrBlock                  = 400, "The specified blob or block content is invalid."
    InvalidBlockId                      = 400, "The specified block ID is invalid. The block ID must be Base64-encoded."
    InvalidBlockList                    = 400, "The specified block list is invalid."
    InvalidDuplicateRow                 = 400, "The batch request contains multiple changes with same row key. An entity can appear only once in a batch request."
    InvalidHeaderValue                  = 400, "The value for one of the HTTP headers is not in the correct format."
    InvalidInput                        = 400, "One of the request inputs is not valid."
    InvalidMarker                       = 400, "The marker specified in the request is not valid."
    InvalidMd5                          = 400, "The MD5 value specified in the request is invalid. MD5 value must be 128 bits and base64 encoded."
    InvalidMetadata                     = 400, "The metadata specified is invalid. It has characters that are not permitted."
    InvalidQueryParameterValue          = 400, "Value for one of the query parameters specified in the request URI is invalid."
    InvalidResourceName                 = 400, "The specified resource name contains invalid characters."
    InvalidTag                          = 400, "The tags specified are invalid. It contains characters that are not permitted."
    InvalidUri                          = 400, "The requested URI does not represent any resource on the server."
    InvalidXmlDocument                  = 400, "XML specified is not syntactically valid."
    InvalidXmlNodeValue                 = 400, "The value for one of the XML nodes is not in the correct format."
    KeyValueTooLarge                    = 400, "The value specified for the key property is larger than the maximum allowed size."
    Md5Mismatch                         = 400, "The MD5 value specified in the request did not match with the MD5 value calculated by the server."
    MetadataTooLarge                    = 400, "The metadata specified exceeds the maximum allowed limit (8KB)."
    MissingRequiredHeader               = 400, "An HTTP header that's mandatory for this request is not specified."
    MissingRequiredQueryParameter       = 400, "A query parameter that's mandatory for this request is not specified."
    MissingRequiredXmlNode              = 400, "An XML node that's required is not specified in the request body."
    MultipleConditionHeadersNotSupported = 400, "Multiple condition headers are not supported."
    MutuallyExclusiveQueryParameters    = 400, "Two or more query parameters specified in the request URI are mutually exclusive."
    OutOfRangeInput                     = 400, "One of the request inputs is out of range."
    OutOfRangeQueryParameterValue       = 400, "One of the query parameters specified in the request URI is outside the permissible range."
    PreviousSnapshotCannotBeNewer       = 400, "The prevsnapshot query parameter value cannot be newer than snapshot query parameter value."
    PropertiesNeedValue                 = 400, "The values are not specified for all properties in the entity."
    PropertyNameInvalid                 = 400, "The property name is invalid."
    PropertyNameTooLong                 = 400, "The property name exceeds the maximum allowed length (255)."
    PropertyValueTooLarge               = 400, "The property value exceeds the maximum allowed size (64KB)."
    TagsTooLarge                        = 400, "The tags specified exceed the maximum allowed limit."
    TooManyProperties                   = 400, "The entity contains more properties than allowed. Each entity can include up to 252 properties to store data."
    UnsatisfiableCondition              = 400, "The request includes an unsatisfiable condition for this operation."
    UnsupportedHeader                   = 400, "One of the HTTP headers specified in the request is not supported."
    XMethodIncorrectValue               = 400, "The specified X-HTTP-Method value is invalid."
    XMethodIncorrectCount               = 400, "More than one X-HTTP-Method is specified."
    XMethodNotUsingPost                 = 400, "The request uses X-HTTP-Method with an Http verb other than POST."

    InvalidToken                        = 401, "Server failed to authenticate the request. Please refer to the information in the www-authenticate header.", "InvalidAuthenticationInfo"
    NoAuthenticationInformation         = 401, "Server failed to authenticate the request. Please refer to the information in the www-authenticate header."

    AuthenticationFailed                = 403, "Server failed to authenticate the request. Make sure the value of Authorization header is formed correctly including the signature."
    AuthorizationFailure                = 403, "This request is not authorized to perform this operation."
    AuthorizationPermissionMismatch     = 403, "This request is not authorized to perform this operation using this permission."
    AuthorizationProtocolMismatch       = 403, "This request is not authorized to perform this operation using this protocol."
    AuthorizationResourceTypeMismatch   = 403, "This request is not authorized to perform this operation using this resource type."
    AuthorizationServiceMismatch        = 403, "This request is not authorized to perform this operation using this service."
    AuthorizationSourceIPMismatch       = 403, "This request is not authorized to perform this operation using this source IP."
    CorsPreflightFailure                = 403, "CORS not enabled or no matching rule found for this request."
    InsufficientAccountPermissions      = 403, "The account being accessed does not have sufficient permissions to execute this operation. Write operations are not allowed."
    OperationNotAllowedOnRootBlob       = 403, "The specified operation is not allowed on a root blob."
    UnauthorizedBlobOverwrite           = 403, "This request is not authorized to perform blob overwrites."

    BlobNotFound                        = 404, "The specified blob does not exist."
    CannotVerifyCopySource              = 404, "Could not verify the copy source."
    ContainerNotFound                   = 404, "The specified container does not exist."
    MessageNotFound                     = 404, "The specified message does not exist."
    QueueNotFound                       = 404, "The specified queue does not exist."
    ResourceNotFound                    = 404, "The specified resource does not exist."
    TableNotFound                       = 404, "The table specified does not exist."

    MethodNotAllowed                    = 405, "The requested method is not allowed on the specified resource."
    UnsupportedHttpVerb                 = 405, "The resource doesn't support specified Http Verb."

    BlobAlreadyExists                   = 409, "The specified blob already exists."
    BlobArchived                        = 409, "This operation is not permitted on an archived blob."
    BlobBeingRehydrated                 = 409, "This operation is not permitted because the blob is being rehydrated."
    BlobIsSealed                        = 409, "The specified blob is sealed and its contents can't be modified unless the blob is re-created after a delete."
    BlobOverwritten                     = 409, "The blob has been recreated since the previous snapshot was taken."
    BlobSnapshotNotSoftDeleted          = 409, "The blob snapshot or version has to be soft-deleted before it can be deleted permanently."
    BlobTierInadequateForContentLength  = 409, "The specified blob tier size limit cannot be less than content length."
    BlockCountExceedsLimit              = 409, "The uncommitted block count cannot exceed the maximum limit of 100,000 blocks."
    CannotChangeToLowerTier             = 409, "A higher blob tier has already been explicitly set."
    CopyIdMismatch                      = 409, "The specified copy ID did not match the copy ID for the pending copy operation."
    ContainerAlreadyExists              = 409, "The specified container already exists."
    EntityAlreadyExists                 = 409, "The specified entity already exists."
    InvalidBlobType                     = 409, "The blob type is invalid for this operation."
    LeaseAlreadyPresent                 = 409, "There is already a lease present."
    LeaseIdMismatchWithLeaseOperation   = 409, "The lease ID specified did not match the lease ID for the blob."
    LeaseIsBreakingAndCannotBeAcquired  = 409, "The lease ID matched, but the lease is currently in breaking state and cannot be acquired until it is broken."
    LeaseIsBreakingAndCannotBeChanged   = 409, "The lease ID matched, but the lease is currently in breaking state and cannot be changed."
    LeaseIsBrokenAndCannotBeRenewed     = 409, "The lease ID matched, but the lease has been broken explicitly and cannot be renewed."
    LeaseNotPresentWithLeaseOperation   = 409, "There is currently no lease on the blob."
    NoPendingCopyOperation              = 409, "There is currently no pending copy operation."
    PendingCopyOperation                = 409, "There is currently a pending copy operation."
    PreviousSnapshotNotFound            = 409, "The previous snapshot is not found."
    PublicAccessNotPermitted            = 409, "Public access is not permitted on this storage account."
    QueueAlreadyExists                  = 409, "The specified queue already exists."
    SequenceNumberIncrementTooLarge     = 409, "The sequence number increment cannot be performed because it would result in overflow of the sequence number."
    SnapshotsPresent                    = 409, "This operation is not permitted because the blob has snapshots."
    TableAlreadyExists                  = 409, "The table specified already exists."

    MissingContentLengthHeader          = 411, "The content length for the request was not specified."

    AppendPositionConditionNotMet       = 412, "The append position condition specified was not met."
    ConditionNotMet                     = 412, "The condition specified using HTTP conditional header(s) is not met."
    InfiniteLeaseDurationRequired       = 412, "The lease ID matched, but the specified lease must be an infinite-duration lease."
    LeaseIdMismatchWithBlobOperation    = 412, "The lease ID specified did not match the lease ID for the blob."
    LeaseIdMismatchWithContainerOperation = 412, "The lease ID specified did not match the lease ID for the container."
    LeaseIdMissing                      = 412, "There is currently a lease on the blob and no lease ID was specified in the request."
    ContainerLeaseIdMissing             = 412, "There is currently a lease on the container and no lease ID was specified in the request.", "LeaseIdMissing"
    LeaseLost                           = 412, "A lease ID was specified, but the lease for the blob has expired."
    ContainerLeaseLost                  = 412, "A lease ID was specified, but the lease for the container has expired.", "LeaseLost"
    LeaseNotPresentWithBlobOperation    = 412, "There is currently no lease on the blob."
    LeaseNotPresentWithContainerOperation = 412, "There is currently no lease on the container."
    MaxBlobSizeConditionNotMet          = 412, "The max blob size condition specified was not met."
    SequenceNumberConditionNotMet       = 412, "The sequence number condition specified was not met."
    SourceConditionNotMet               = 412, "The source condition specified using HTTP conditional header(s) is not met."
    TargetConditionNotMet               = 412, "The target condition specified using HTTP conditional header(s) is not met."
    UpdateConditionNotSatisfied         = 412, "The update condition specified in the request was not satisfied."

    RequestBodyTooLarge                 = 413, "The request body is too large and exceeds the maximum permissible limit."
    AtomFormatNotSupported              = 415, "Atom format is not supported."
    JsonVerboseFormatNotSupported       = 415, "JSON Verbose format is not supported."
    MediaTypeNotSupported               = 415, "The media type is not supported."
    InvalidRange                        = 416, "The range specified is invalid for the current size of the resource."
    InvalidPageRange                    = 416, "The page range specified is invalid."

    InternalError                       = 500, "The server encountered an internal error. Please retry the request."
    OperationTimedOut                   = 500, "The operation could not be completed within the permitted time."
    InsufficientStorage                 = 507, "The server has no space left to store the request body. Nothing was written."
    NotImplemented                      = 501, "The requested operation is not implemented on the specified resource."
    ServerBusy                          = 503, "The server is currently unable to receive requests. Please retry your request."
    # fmt: on


class StorageError(Exception):
    """What a client can cause. `details` become extra elements of the error document, `headers` extra response headers."""

    def __init__(
        self,
        code: Code,
        *,
        message: str = "",
        details: dict[str, str] | None = None,
        headers: dict[str, str] | None = None,
        status: int | None = None,
    ):
        super().__init__(code.wire)
        self.code = code
        self.status = status or code.status  # a copy source's refusal is told with the status the source gave
        self.message = message or code.message
        self.details = details or {}
        self.headers = headers or {}


def invalid_header(name: str, value: str) -> StorageError:
    return StorageError(Code.InvalidHeaderValue, details={"HeaderName": name, "HeaderValue": value})


def missing_header(name: str) -> StorageError:
    return StorageError(Code.MissingRequiredHeader, details={"HeaderName": name})


def invalid_query(name: str, value: str, reason: str = "") -> StorageError:
    details = {"QueryParameterName": name, "QueryParameterValue": value}
    return StorageError(Code.InvalidQueryParameterValue, details=details | ({"Reason": reason} if reason else {}))


def query_out_of_range(name: str, value: str, minimum: int, maximum: int) -> StorageError:
    details = {"QueryParameterName": name, "QueryParameterValue": value}
    details |= {"MinimumAllowed": str(minimum), "MaximumAllowed": str(maximum)}
    return StorageError(Code.OutOfRangeQueryParameterValue, details=details)


def digest_mismatch(code: Code, name: str, specified: bytes, calculated: bytes) -> StorageError:
    details = {f"UserSpecified{name}": b64encode(specified).decode(), f"ServerCalculated{name}": b64encode(calculated).decode()}
    return StorageError(code, details=details)
