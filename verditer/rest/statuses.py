"""The status number of each class of error."""

from verditer.core.errors import ErrorClass

# fmt: off
STATUS = {
    ErrorClass.NOT_MODIFIED:        304,
    ErrorClass.INVALID:             400,
    ErrorClass.UNAUTHENTICATED:     401,
    ErrorClass.FORBIDDEN:           403,
    ErrorClass.NOT_FOUND:           404,
    ErrorClass.NOT_ALLOWED:         405,
    ErrorClass.CONFLICT:            409,
    ErrorClass.LENGTH_REQUIRED:     411,
    ErrorClass.PRECONDITION_FAILED: 412,
    ErrorClass.TIMED_OUT:           408,
    ErrorClass.TOO_LARGE:           413,
    ErrorClass.UNSUPPORTED_TYPE:    415,
    ErrorClass.INVALID_RANGE:       416,
    ErrorClass.INTERNAL:            500,
    ErrorClass.NOT_IMPLEMENTED:     501,
    ErrorClass.UNAVAILABLE:         503,
    ErrorClass.OUT_OF_SPACE:        507,
}
# fmt: on


def source_status(status: ErrorClass | int) -> int:
    """Of a copy source: the number that another server answered, or the one of a class of error that this server found."""
    return status if isinstance(status, int) else STATUS[status]
