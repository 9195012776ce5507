"""Authorize: whether the caller may call the operation. The parts of a changeset take this step too."""

from verditer.core.errors import Code, StorageError
from verditer.core.grant import Grant, admit
from verditer.rest.operation import Level
from verditer.rest.stages import Authorized, Routed
from verditer.rest.wire_errors import invalid_query


def authorize(routed: Routed, grant: Grant) -> Authorized:
    """Check what the grant allows and, on the secondary endpoint, that the operation only reads."""
    op, address = routed.op, routed.address
    create_only = admit(op.allow, grant)
    if address.secondary and op.writes and op.route.level is not Level.BATCH:  # the parts of a batch decide for it
        raise StorageError(Code.InsufficientAccountPermissions)
    if op.route.comp == "stats" and op.route.level is Level.SERVICE and not address.secondary:
        raise invalid_query("comp", "stats")
    return Authorized(
        request=routed.request,
        request_id=routed.request_id,
        batch=routed.batch,
        address=address,
        version=routed.version,
        op=op,
        target=routed.target,
        grant=grant,
        create_only=create_only,
    )
