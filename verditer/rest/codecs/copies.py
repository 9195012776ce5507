"""The description of a failed copy: `404 BlobNotFound "Copy failed when reading the source. ..."`."""

from verditer.core.errors import ErrorClass
from verditer.core.records.copy import CopyState
from verditer.rest.statuses import source_status


def status_description(copy: CopyState) -> str | None:
    failure = copy.failure
    if failure is None:
        return copy.description
    status = source_status(failure.status if isinstance(failure.status, int) else ErrorClass[failure.status])
    return f'{status} {failure.code} "{copy.description}"'
