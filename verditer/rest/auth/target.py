"""Which container and blob decide about access, and which resource holds the access policies.

The operation must act on the same container and blob that were checked here.
"""

from verditer.core.names import ROOT_CONTAINER
from verditer.rest.address import Address, is_root_blob


def target_of(address: Address) -> tuple[str, str]:
    """Container and blob, "" where there is none. `/name` is a container if `restype` is sent, else a blob in `$root`."""
    segments = address.segments
    if len(segments) == 2:
        return segments[0], segments[1]
    if not segments:
        return "", ""
    if is_root_blob(segments) and not address.query.get("restype"):
        return ROOT_CONTAINER, segments[0]
    return segments[0], ""


def container_of(address: Address) -> str:
    return target_of(address)[0]


def first_segment(address: Address) -> str:
    """The queue or the share."""
    return address.segments[0] if address.segments else ""


def table_of_token(address: Address) -> str:
    """The table that a SAS names."""
    return address.query.get("tn", "")
