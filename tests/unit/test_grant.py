"""Permissions: every line of Azure's permission page, and the error code for a missing one."""

import pytest

from verditer.core.errors import Code, StorageError, TokenIssuer
from verditer.core.grant import (
    ACCOUNT_INFORMATION,
    ANY,
    AUTHORIZATION_URI,
    KEY_ONLY,
    KEY_OR_BEARER,
    Allow,
    Grant,
    Scheme,
    account_only,
    admit,
    container_sas,
    sas,
)

SV = "2026-02-06"
READ = sas("r", public=("blob", "container"))
LIST = container_sas("l", public=("container",))
PUT_BLOB = sas("cw", overwrite="w")
PUT_BLOCK = sas("w", overwrite="w", create_since="2026-06-06")


def account(letters: str, types: str = "sco", version: str = SV) -> Grant:
    return Grant(scheme=Scheme.ACCOUNT_SAS, letters=letters, resource_types=types, version=version)


def service(letters: str, reach: str, version: str = SV) -> Grant:
    return Grant(scheme=Scheme.SERVICE_SAS, letters=letters, reach=reach, version=version)


def anonymous(reach: str, version: str = SV) -> Grant:
    return Grant(scheme=Scheme.ANONYMOUS, reach=reach, version=version)


def refusal(allow: Allow, grant: Grant) -> Code | None:
    try:
        admit(allow, grant)
    except StorageError as error:
        return error.code
    return None


# fmt: off
# Operation, its row, then the sufficient permissions of an account SAS (with its resource types), container SAS, blob SAS.
ROWS = [
    ("List Containers",            account_only("s", "l"),                 "s",   "l",  "",   ""),
    ("Get Service Properties",     account_only("s", "r"),                 "s",   "r",  "",   ""),
    ("Set Service Properties",     account_only("s", "w"),                 "s",   "w",  "",   ""),
    ("Create Container",           account_only("c", "cw"),                "c",   "cw", "",   ""),
    ("Get Container Properties",   account_only("c", "r", public=("container",)), "c", "r", "", ""),
    ("Set Container Metadata",     account_only("c", "w"),                 "c",   "w",  "",   ""),
    ("Set Container ACL",          KEY_ONLY,                               "",    "",   "",   ""),
    ("Break Container Lease",      account_only("c", "wd"),                "c",   "wd", "",   ""),
    ("Delete Container",           account_only("c", "d"),                 "c",   "d",  "",   ""),
    ("List Blobs",                 LIST,                                   "c",   "l",  "l",  ""),
    ("Find by Tags, service",      account_only("o", "f"),                 "o",   "f",  "",   ""),
    ("Find by Tags, container",    container_sas("f"),                     "c",   "f",  "f",  ""),
    ("Get Account Information",    ACCOUNT_INFORMATION,                    "sco", "racwdxyltfmeopiu", "r", "r"),
    ("Batch",                      ANY,                                    "sco", "racwdxyltfmeopiu", "racwdxyltfmeopiu", ""),
    ("Get Blob",                   READ,                                   "o",   "r",  "r",  "r"),
    ("Put Blob",                   PUT_BLOB,                               "o",   "cw", "cw", "cw"),
    ("Put Block",                  PUT_BLOCK,                              "o",   "w",  "w",  "w"),
    ("Append Block",               sas("aw"),                              "o",   "aw", "aw", "aw"),
    ("Set Metadata",               sas("w"),                               "o",   "w",  "w",  "w"),
    ("Get Tags",                   sas("t"),                               "o",   "t",  "t",  "t"),
    ("Snapshot",                   sas("cw"),                              "o",   "cw", "cw", "cw"),
    ("Break Lease",                sas("wd"),                              "o",   "wd", "wd", "wd"),
    ("Delete Blob",                sas("d"),                               "o",   "d",  "d",  "d"),
    ("Delete Version",             sas("x"),                               "o",   "x",  "x",  "x"),
    ("Permanent Delete",           sas("y"),                               "o",   "y",  "y",  "y"),
    ("Legal Hold",                 sas("i"),                               "o",   "i",  "i",  "i"),
]
# fmt: on


@pytest.mark.parametrize(("name", "allow", "types", "by_account", "by_container", "by_blob"), ROWS, ids=[row[0] for row in ROWS])
def test_each_operation_takes_exactly_its_letters(
    name: str, allow: Allow, types: str, by_account: str, by_container: str, by_blob: str
) -> None:
    for letter in "racwdxyltfmeopiu":
        for kind in "sco":
            expected = kind in types and letter in by_account
            assert (refusal(allow, account(letter, kind)) is None) is expected, (letter, kind)
        assert (refusal(allow, service(letter, "c")) is None) is (letter in by_container), letter
        assert (refusal(allow, service(letter, "b")) is None) is (letter in by_blob), letter


@pytest.mark.parametrize(("name", "allow"), [row[:2] for row in ROWS], ids=[row[0] for row in ROWS])
def test_an_account_key_may_do_everything(name: str, allow: Allow) -> None:
    assert admit(allow, Grant(scheme=Scheme.KEY)) is False


@pytest.mark.parametrize(
    ("allow", "grant", "code"),
    [
        (READ, account("w", "o"), Code.AuthorizationPermissionMismatch),
        (READ, account("r", "sc"), Code.AuthorizationResourceTypeMismatch),
        (READ, account("w", "sc"), Code.AuthorizationResourceTypeMismatch),
        (READ, service("w", "b"), Code.AuthorizationPermissionMismatch),
        (READ, service("", "c"), Code.AuthorizationPermissionMismatch),
        (LIST, service("l", "b"), Code.AuthorizationFailure),
        (KEY_ONLY, account("racwdxyltfmeopiu"), Code.AuthorizationFailure),
        (KEY_ONLY, service("racwdl", "c"), Code.AuthorizationFailure),
        (account_only("c", "d"), service("d", "c"), Code.AuthorizationFailure),
        (READ, service("w", "b", version="2014-02-14"), Code.ResourceNotFound),
        (READ, service("w", "b", version=""), Code.ResourceNotFound),
        (READ, service("w", "b", version="2015-04-05"), Code.AuthorizationPermissionMismatch),
    ],
)
def test_a_refusal_says_what_is_missing(allow: Allow, grant: Grant, code: Code) -> None:
    assert refusal(allow, grant) is code


@pytest.mark.parametrize(
    ("allow", "grant", "create_only"),
    [
        (PUT_BLOB, account("c"), True),
        (PUT_BLOB, account("cw"), False),
        (PUT_BLOB, service("w", "b"), False),
        (PUT_BLOB, service("rc", "c"), True),
        (sas("cw"), service("c", "b"), False),
        (PUT_BLOCK, service("c", "b", version="2026-06-06"), True),
        (PUT_BLOCK, service("w", "b", version="2026-06-06"), False),
    ],
)
def test_a_caller_without_the_write_letter_may_only_create(allow: Allow, grant: Grant, create_only: bool) -> None:
    assert admit(allow, grant) is create_only


@pytest.mark.parametrize(
    ("allow", "level", "admitted"),
    [
        (READ, "blob", True),
        (READ, "container", True),
        (READ, "", False),
        (LIST, "container", True),
        (LIST, "blob", False),
        (PUT_BLOB, "container", False),
        (KEY_ONLY, "container", False),
    ],
)
def test_anonymous_callers_reach_what_the_public_access_level_opens(allow: Allow, level: str, admitted: bool) -> None:
    assert (refusal(allow, anonymous(level)) is None) is admitted


def test_an_anonymous_caller_is_challenged() -> None:
    with pytest.raises(StorageError) as caught:
        admit(READ, anonymous("", version="2019-12-12"))
    assert caught.value.code is Code.NoAuthenticationInformation
    assert caught.value.details == TokenIssuer(AUTHORIZATION_URI)


@pytest.mark.parametrize("version", ["", "2019-07-07"])
def test_an_anonymous_caller_of_an_old_version_is_told_that_nothing_is_there(version: str) -> None:
    assert refusal(READ, anonymous("", version=version)) is Code.ResourceNotFound


def test_a_bearer_token_reaches_all_but_what_is_the_keys_alone() -> None:
    bearer = Grant(scheme=Scheme.BEARER)
    assert refusal(KEY_ONLY, bearer) is Code.ResourceNotFound
    assert refusal(KEY_OR_BEARER, bearer) is None
    assert refusal(sas("w"), bearer) is None
