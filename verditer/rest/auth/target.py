"""Which container and blob a request is about, for those who decide on access. The operation must act on the same two."""

from verditer.core.names import ROOT_CONTAINER
from verditer.rest.address import Address, is_root_blob


def target_of(address: Address) -> tuple[str, str]:
    """Container and blob, "" where there is none. `/name` is a container with `restype`, and a blob in `$root` without."""
    segments = address.segments
    if len(segments) == 2:
        return segments[0], segments[1]
    if not segments:
        return "", ""
    if is_root_blob(segments) and not address.query.get("restype"):
        return ROOT_CONTAINER, segments[0]
    return segments[0], ""


def holder_of(address: Address, service: str) -> str:
    """The container, queue or table whose stored access policies a SAS may name."""
    if service == "blob":
        return target_of(address)[0]
    if service == "table":
        return address.query.get("tn", "")
    return address.segments[0] if address.segments else ""
