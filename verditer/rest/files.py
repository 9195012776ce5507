"""How a path of the File service becomes a level and a target, and how a rename names its source."""

from collections.abc import Collection, Mapping
from urllib.parse import SplitResult, urlsplit

from verditer.core.files.names import split_path
from verditer.core.names import AccountName, FilePath, ShareName, check_queue_name
from verditer.rest.address import Address, parse_address
from verditer.rest.operation import Level
from verditer.rest.wire_errors import invalid_header, missing_header

RENAME_SOURCE = "x-ms-file-rename-source"
_ALLOW_TRAILING_DOT = "x-ms-allow-trailing-dot"
_SOURCE_ALLOW_TRAILING_DOT = "x-ms-source-allow-trailing-dot"
_NONCHARACTERS_SINCE = "2021-12-02"


def locate_file(address: Address, headers: Mapping[str, str]) -> tuple[Level, AccountName | ShareName | FilePath]:
    """The root directory of a share has the share's own path; the query says which of the two a request is about."""
    account, query = address.account, address.query
    if not address.segments:
        return Level.SERVICE, AccountName(account, "file")
    share, path = _share_and_path(address)
    check_queue_name(share)
    is_directory = query.get("restype", "").lower() == "directory" or "handles" in query.get("comp", "").lower()
    if not path and not is_directory:
        return Level.SHARE, ShareName(account, share)
    return Level.PATH, _file_path(account, share, path, headers, _ALLOW_TRAILING_DOT, is_directory=is_directory)


def _share_and_path(address: Address) -> tuple[str, str]:
    """In the URLs of copy and rename sources, the Java library also encodes the slash between the share and the path."""
    share, _, path = "/".join(address.segments).partition("/")
    return share, path


def rename_source(
    headers: Mapping[str, str], *, is_directory: bool, accounts: Collection[str], product_style: bool
) -> tuple[Address, FilePath]:
    """The source of a rename, from its URL. The caller has permission for the target; both are in one share."""
    text = headers.get(RENAME_SOURCE, "")
    if not text:
        raise missing_header(RENAME_SOURCE)
    url = _split(text)
    if url is None or not url.netloc:
        raise invalid_header(RENAME_SOURCE, text)
    target = f"{url.path}?{url.query}" if url.query else url.path or "/"
    address = parse_address(target, url.netloc, accounts=accounts, product_style=product_style)
    share, path = _share_and_path(address)
    if not path or "sharesnapshot" in address.query:  # nothing is renamed in a snapshot
        raise invalid_header(RENAME_SOURCE, text)
    return address, _file_path(address.account, share, path, headers, _SOURCE_ALLOW_TRAILING_DOT, is_directory=is_directory)


def _split(text: str) -> SplitResult | None:
    try:
        return urlsplit(text)
    except ValueError:  # a host that looks like an IPv6 address and is none
        return None


def _file_path(
    account: str, share: str, path: str, headers: Mapping[str, str], allow_trailing_dot: str, *, is_directory: bool
) -> FilePath:
    entries = split_path(
        path,
        is_directory=is_directory,
        allow_trailing_dot=allow_trailing_dot in headers and headers[allow_trailing_dot].lower() == "true",
        allow_noncharacters=headers.get("x-ms-version", _NONCHARACTERS_SINCE) >= _NONCHARACTERS_SINCE,
    )
    if not entries:
        return FilePath(account, share, (), ())
    names, folded = zip(*entries, strict=True)
    return FilePath(account, share, names, folded)
