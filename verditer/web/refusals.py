"""Why a request was refused, in one sentence, for the 409 and 412 answers that concurrent clients cause.

The table has a sentence for every error of the classes conflict and precondition failed; a test walks `core/errors.py`.
"""

from verditer.core.errors import Code, ErrorClass

# fmt: off
SENTENCES = {
    "AppendPositionConditionNotMet":      "The blob has grown past the position that the writer expected, so somebody else appended first.",
    "BlobAlreadyExists":                  "The request wanted to create the blob only if it did not exist, and it exists.",
    "BlobArchived":                       "The blob is in the archive tier and has to be rehydrated before it can be read or changed.",
    "BlobBeingRehydrated":                "The blob is on its way out of the archive tier and cannot be changed until it has arrived.",
    "BlobDoesNotUseCustomerSpecifiedEncryption": "The request brought an encryption key, and the blob was stored without one.",
    "BlobImmutableDueToLegalHold":        "The blob is under a legal hold, so nobody may change or delete it.",
    "BlobImmutableDueToPolicy":           "An immutability policy protects the blob until its end, so nobody may change or delete it.",
    "BlobIsSealed":                       "The append blob was sealed, so nothing can be appended to it any more.",
    "BlobOperationNotSupported":          "The blob or its account does not support the operation.",
    "BlobOverwritten":                    "The blob was replaced after the earlier snapshot, so the two cannot be compared.",
    "BlobSnapshotNotSoftDeleted":         "Only a soft-deleted snapshot or version can be removed for good.",
    "BlobTierInadequateForContentLength": "The blob is larger than the tier allows.",
    "BlobUsesCustomerSpecifiedEncryption": "The blob was stored with a key of the client, and the request did not bring that key.",
    "BlockCountExceedsLimit":             "The blob has the maximum number of blocks.",
    "ByteRangeNotGranted":                "Another SMB handle has locked some of the bytes.",
    "ByteRangeNotLocked":                 "The handle holds no lock on exactly these bytes.",
    "CannotChangeToLowerTier":            "The page blob already has a higher tier, which cannot be lowered.",
    "CannotDeleteReadOnly":               "The file has the read-only attribute, so it cannot be deleted over SMB.",
    "CannotVerifyCopySource":             "The source of the copy could not be read or is not of the right kind.",
    "ConditionNotMet":                    "The object was changed after the client had read it: its ETag or date is no longer the one in the condition.",
    "ContainerAlreadyExists":             "A container of this name exists already.",
    "ContainerHasLegalHold":              "The container is under a legal hold.",
    "ContainerImmutabilityPolicyLocked":  "The container has a locked immutability policy and holds blobs.",
    "ContainerImmutableDueToPolicy":      "The container has an immutability policy and holds protected blobs.",
    "ContainerImmutableStorageWithVersioningEnabled": "The container has version level immutability and holds blobs.",
    "CopyIdMismatch":                     "Another copy than the named one is pending.",
    "DirectoryNotEmpty":                  "The directory still has entries.",
    "EntityAlreadyExists":                "An entity with these keys exists already: another client inserted it first.",
    "EntryInUse":                         "An SMB client has the file or directory open, or something below it.",
    "FileLockConflict":                   "An SMB client has locked the bytes that the request wanted to read or write.",
    "IncrementalCopyBlobMismatch":        "The blob is an incremental copy of another source.",
    "IncrementalCopyOfEarlierSnapshotNotAllowed": "A later snapshot was copied already, so this one cannot follow it.",
    "IncrementalCopySourceMustBeSnapshot": "Only a snapshot can be the source of an incremental copy.",
    "InfiniteLeaseDurationRequired":      "The copy can be aborted only with the id of an infinite lease, and the lease on the object ends by itself.",
    "InvalidBlobType":                    "The blob exists with another type than the operation is for.",
    "InvalidSourceBlobType":              "The source is a blob of another type than the copy needs.",
    "IsADirectory":                       "The path names a directory, and the request is for a file.",
    "LeaseAlreadyPresent":                "Another client holds a lease on the object.",
    "LeaseIdMismatchWithBlobOperation":   "The object is leased, and the lease id in the request is not the holder's.",
    "LeaseIdMismatchWithContainerOperation": "The container is leased, and the lease id in the request is not the holder's.",
    "LeaseIdMismatchWithFileOperation":   "The file is leased, and the lease id in the request is not the holder's.",
    "LeaseIdMismatchWithLeaseOperation":  "The lease id in the request is not that of the current lease.",
    "LeaseIdMissing":                     "The object is leased, and the request did not name the lease id, so only the holder may do this.",
    "LeaseIsBreakingAndCannotBeAcquired": "The lease is being broken and cannot be acquired until it has ended.",
    "LeaseIsBreakingAndCannotBeChanged":  "The lease is being broken and cannot be changed.",
    "LeaseIsBrokenAndCannotBeRenewed":    "Somebody broke the lease, so its former holder cannot renew it.",
    "LeaseLost":                          "The lease in the request has expired or was released, so the writer no longer holds it.",
    "LeaseNotPresentWithBlobOperation":   "The request names a lease, and there is none on the object.",
    "LeaseNotPresentWithContainerOperation": "The request names a lease, and there is none on the container.",
    "LeaseNotPresentWithFileOperation":   "The request names a lease, and there is none on the file.",
    "LeaseNotPresentWithLeaseOperation":  "There is no lease to change, renew or break.",
    "MaxBlobSizeConditionNotMet":         "The append would make the blob larger than the writer allowed.",
    "NoPendingCopyOperation":             "There is no pending copy to abort.",
    "NotADirectory":                      "The path names a file, and the request is for a directory.",
    "OperationNotAllowedOnIncrementalCopyBlob": "The blob is an incremental copy, which only further copies may change.",
    "PendingCopyOperation":               "A copy into the object is still pending.",
    "PreviousSnapshotNotFound":           "The earlier snapshot of the comparison does not exist.",
    "PublicAccessNotPermitted":           "The account does not allow public access.",
    "QueueAlreadyExists":                 "A queue of this name exists already, with other metadata.",
    "ReadOnlyAttribute":                  "The file has the read-only attribute.",
    "RequestForbiddenByContainerEncryptionPolicy": "The container prescribes an encryption scope, and the request asked for another one.",
    "ResourceAlreadyExists":              "A file or directory of this name exists already.",
    "ResourceTypeMismatch":               "The path names a directory where a file is needed, or the other way round.",
    "SMBDeletePending":                   "An SMB client has marked the file for deletion; it disappears when the last handle is closed.",
    "SequenceNumberConditionNotMet":      "The sequence number of the page blob is not what the writer expected, so another writer is ahead.",
    "SequenceNumberIncrementTooLarge":    "The sequence number would exceed its maximum.",
    "ShareAlreadyExists":                 "A share of this name exists already.",
    "ShareHasSnapshots":                  "The share has snapshots, which the request did not include.",
    "ShareSnapshotCountExceeded":         "The share has the maximum number of snapshots.",
    "SharingViolation":                   "An SMB client has the file open with a share mode that excludes the request.",
    "SnapshotsPresent":                   "The blob has snapshots, and the request did not say what to do with them.",
    "SourceConditionNotMet":              "The source of the copy was changed after the client had read it.",
    "TableAlreadyExists":                 "A table of this name exists already.",
    "TargetConditionNotMet":              "The destination of the copy was changed after the client had read it.",
    "TooManyHandles":                     "The file has the maximum number of open handles.",
    "UpdateConditionNotSatisfied":        "The entity was changed after the client had read it: its ETag is no longer the one in If-Match.",
}
# fmt: on


def refusals() -> set[str]:
    """The wire codes of every error that the table explains."""
    classes = (ErrorClass.CONFLICT, ErrorClass.PRECONDITION_FAILED)
    return {code.azure_code for code in Code if code.error_class in classes}


def sentence(status: int | str, error_code: str | None) -> str | None:
    """None where the request was not refused for the sake of another client."""
    return SENTENCES.get(error_code or "") if status in (409, 412) else None
