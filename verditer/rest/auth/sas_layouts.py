"""What the tokens of each service sign, as rows: the fields by version, the resource, and the kinds of resource.

Create a service SAS and Create a user delegation SAS are the pages of Azure that say so.
"""

from urllib.parse import unquote

from verditer.core.grant import EntityReach
from verditer.rest.address import Address
from verditer.rest.auth.signature import authentication_failed
from verditer.rest.auth.target import target_of
from verditer.rest.service import Layouts, ResourceKind, ServiceSas, SignedResource

_KEYS = ("spk", "srk", "epk", "erk")


def _blob_resource(address: Address, kind: str) -> SignedResource:
    """The container, the blob, or the directory of `sdd` segments above the blob."""
    if kind not in BLOB_SAS.kinds:
        raise authentication_failed(f"sr is not valid: '{kind}'." if kind else "sr is mandatory. Cannot be empty")
    container, blob = target_of(address)
    if not container or (not blob and kind in ("b", "bs", "bv")):
        raise authentication_failed(f"A SAS with sr={kind} does not reach this resource.")
    root = f"{address.account}/{container}"
    if kind == "c":
        return SignedResource((root,), _NO_SNAPSHOT)
    names = [blob, _name_with_backslashes(address)] if "%5" in address.path or "\\" in address.path else [blob]
    if kind == "d":
        names = [_directory(name, address.query.get("sdd", "")) for name in names]
    spellings = tuple(f"{root}/{name}" if name else root for name in dict.fromkeys(names))
    return SignedResource(spellings, (("snapshot", _snapshot(address, kind)),))


_NO_SNAPSHOT = (("snapshot", ""),)


def _name_with_backslashes(address: Address) -> str:
    """The name of the blob as it was sent. Azure stores its backslashes as slashes, and the SDKs sign them as backslashes."""
    path = unquote(address.path)
    skipped = 1 + address.path_style + (len(address.segments) == 2)
    return path.split("/", skipped)[-1]


def _directory(name: str, depth: str) -> str:
    segments = name.split("/") if name else []
    if not (depth.isascii() and depth.isdigit()) or int(depth) > len(segments):
        raise authentication_failed("Signed Directory Depth Invalid")
    return "/".join(segments[: int(depth)])


def _snapshot(address: Address, kind: str) -> str:
    parameter = {"bs": "snapshot", "bv": "versionid"}.get(kind)
    if parameter is None:
        return ""
    if not address.query.get(parameter):
        raise authentication_failed(f"A SAS with sr={kind} needs the query parameter {parameter}.")
    return address.query[parameter]


def _file_resource(address: Address, kind: str) -> SignedResource:
    """The share, or one file. There are no tokens for a directory."""
    if kind not in FILE_SAS.kinds:
        raise authentication_failed(f"sr is not valid: '{kind}'." if kind else "sr is mandatory. Cannot be empty")
    if not address.segments or (kind == "f" and len(address.segments) < 2):
        raise authentication_failed(f"A SAS with sr={kind} does not reach this resource.")
    share = f"{address.account}/{address.segments[0]}"
    return SignedResource((share if kind == "s" else f"{share}/{address.segments[1]}",))


def _queue_resource(address: Address, kind: str) -> SignedResource:
    if not address.segments:
        raise authentication_failed("A service SAS for a queue does not reach this resource.")
    return SignedResource((f"{address.account}/{address.segments[0]}",))


def _table_resource(address: Address, kind: str) -> SignedResource:
    """The table that the token names. The operation checks that it is the table it works on."""
    table = address.query.get("tn", "").lower()
    keys = {name: address.query.get(name, "") for name in _KEYS}
    if not table:
        raise authentication_failed("tn is mandatory. Cannot be empty")
    if (keys["srk"] and not keys["spk"]) or (keys["erk"] and not keys["epk"]):
        raise authentication_failed("srk needs spk, and erk needs epk.")
    if any("\n" in value for value in (table, *keys.values())):
        raise authentication_failed("Signature fields not well formed.")
    return SignedResource((f"{address.account}/{table}",), tuple(keys.items()))


def _entity_reach(resource: SignedResource) -> EntityReach:
    """A key that is empty is signed like one that is missing, and means the same."""
    keys = dict(resource.fields)
    return EntityReach(
        table=resource.names[0].partition("/")[2],
        start_partition=keys["spk"] or None,
        start_row=keys["srk"] or None,
        end_partition=keys["epk"] or None,
        end_row=keys["erk"] or None,
    )


# "resource" stands for the canonical name of the resource, "snapshot" for the snapshot or version that the request names.
BLOB_SAS = ServiceSas(
    layouts=(
        ("", "sp st se resource si"),
        ("2012-02-12", "sp st se resource si sv"),
        ("2013-08-15", "sp st se resource si sv rscc rscd rsce rscl rsct"),
        ("2015-04-05", "sp st se resource si sip spr sv rscc rscd rsce rscl rsct"),
        ("2018-11-09", "sp st se resource si sip spr sv sr snapshot rscc rscd rsce rscl rsct"),
        ("2020-12-06", "sp st se resource si sip spr sv sr snapshot ses rscc rscd rsce rscl rsct"),
    ),
    resource=_blob_resource,
    fields_of_path=lambda path: {"sr": "b" if "/" in path else "c"},
    # Before 2018-11-09 `sr` was not signed. A later kind must not become valid by being written into an old token.
    kinds={
        "c": ResourceKind(reach="c"),
        "b": ResourceKind(reach="b"),
        "bs": ResourceKind(reach="b", since="2018-11-09"),
        "bv": ResourceKind(reach="b", since="2018-11-09"),
        "d": ResourceKind(reach="d", since="2020-02-10"),
    },
    overrides=True,
)
QUEUE_SAS = ServiceSas(
    layouts=(
        ("", "sp st se resource si"),
        ("2012-02-12", "sp st se resource si sv"),
        ("2015-04-05", "sp st se resource si sip spr sv"),
    ),
    resource=_queue_resource,
    fields_of_path=lambda path: {},
)
FILE_SAS = ServiceSas(
    layouts=(
        ("", "sp st se resource si sv rscc rscd rsce rscl rsct"),
        ("2015-04-05", "sp st se resource si sip spr sv rscc rscd rsce rscl rsct"),
    ),
    resource=_file_resource,
    fields_of_path=lambda path: {"sr": "f" if "/" in path else "s"},
    kinds={"s": ResourceKind(reach="c"), "f": ResourceKind(reach="b")},
    overrides=True,
)
TABLE_SAS = ServiceSas(
    layouts=(
        ("", "sp st se resource si sv spk srk epk erk"),
        ("2015-04-05", "sp st se resource si sip spr sv spk srk epk erk"),
    ),
    resource=_table_resource,
    fields_of_path=lambda path: {"tn": path},
    entities=_entity_reach,
)

ACCOUNT_LAYOUTS: Layouts = (
    ("2015-04-05", "account sp ss srt st se sip spr sv"),
    ("2020-12-06", "account sp ss srt st se sip spr sv ses"),
)

# "srh" and "srq" stand for the headers and parameters that they name.
# fmt: off
_KEY = "sp st se resource skoid sktid skt ske sks skv"
_OVERRIDES = "rscc rscd rsce rscl rsct"
BLOB_DELEGATION: Layouts = (
    ("2018-11-09", f"{_KEY}                                  sip spr sv sr snapshot             {_OVERRIDES}"),
    ("2020-02-10", f"{_KEY} saoid suoid scid                 sip spr sv sr snapshot             {_OVERRIDES}"),
    ("2020-12-06", f"{_KEY} saoid suoid scid                 sip spr sv sr snapshot ses         {_OVERRIDES}"),
    ("2025-07-05", f"{_KEY} saoid suoid scid skdutid sduoid  sip spr sv sr snapshot ses         {_OVERRIDES}"),
    ("2026-04-06", f"{_KEY} saoid suoid scid skdutid sduoid  sip spr sv sr snapshot ses srh srq {_OVERRIDES}"),
)
QUEUE_DELEGATION: Layouts = (
    ("2026-02-06", f"{_KEY} skdutid sduoid sip spr sv"),
)
FILE_DELEGATION: Layouts = (
    ("2026-02-06", f"{_KEY} skdutid sduoid sip spr sv {_OVERRIDES}"),
)
# fmt: on
