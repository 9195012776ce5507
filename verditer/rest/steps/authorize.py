"""Authorize: whether the caller may call the operation. The parts of a changeset take this step too."""

from verditer.core.errors import Code, StorageError
from verditer.core.grant import admit, check_letter
from verditer.rest.operation import Level
from verditer.rest.stages import Authenticated, Authorized
from verditer.rest.wire_errors import invalid_query


def authorize(authenticated: Authenticated) -> Authorized:
    """Check what the grant allows and, on the secondary endpoint, that the operation only reads."""
    op, address = authenticated.op, authenticated.address
    create_only = admit(op.allow, authenticated.grant)
    for param in op.takes.lettered:
        sent = (address.query if param.query else authenticated.request.headers).get(param.wire)
        if param.needs_letter(sent):
            check_letter(param.letter, authenticated.grant)
    if address.secondary and op.writes and op.route.level is not Level.BATCH:  # the parts of a batch decide for it
        raise StorageError(Code.InsufficientAccountPermissions)
    if op.route.comp == "stats" and op.route.level is Level.SERVICE and not address.secondary:
        raise invalid_query("comp", "stats")
    return Authorized(
        request=authenticated.request,
        request_id=authenticated.request_id,
        batch=authenticated.batch,
        address=address,
        version=authenticated.version,
        op=op,
        target=authenticated.target,
        grant=authenticated.grant,
        create_only=create_only,
    )


def authorize_reading(authenticated: Authenticated) -> Authorized:
    """For a pipeline that only reads."""
    authorized = authorize(authenticated)
    if authorized.op.writes:
        raise StorageError(Code.InsufficientAccountPermissions)
    return authorized
