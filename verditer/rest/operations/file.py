"""The File service, operation by operation. None is built yet: every row answers 501 by name, once the caller is known."""

from verditer.core.grant import KEY_ONLY, account_only, container_sas, sas
from verditer.core.guard import NONE
from verditer.rest import headers as h
from verditer.rest.operation import EMPTY, NOT_YET, STREAM, Answer, Level, Op, route

A, S, P = Level.SERVICE, Level.SHARE, Level.PATH
SERVICE, SHARE, DIRECTORY = {"restype": "service"}, {"restype": "share"}, {"restype": "directory"}
SYMBOLIC_LINK, HARD_LINK = {"restype": "symboliclink"}, {"restype": "hardlink"}
OK, CREATED, ACCEPTED, NO_CONTENT = Answer(200), Answer(201), Answer(202), Answer(204)

# What a directory asks for: an account SAS for objects, or a service SAS for the share.
LIST, READ, CREATE = container_sas("l"), container_sas("r", resource="o"), container_sas("cw", resource="o")
WRITE, DELETE = container_sas("w", resource="o"), container_sas("d", resource="o")

# fmt: off
OPERATIONS = (
    #  name                          route                                                       takes      body    guard  allow                    call     answer
    Op("GetFileServiceProperties",   route("GET", A, comp="properties", **SERVICE),              h.NOTHING, EMPTY,  NONE,  account_only("s", "r"),  NOT_YET, OK),
    Op("SetFileServiceProperties",   route("PUT", A, comp="properties", **SERVICE),              h.NOTHING, STREAM, NONE,  account_only("s", "w"),  NOT_YET, ACCEPTED),
    Op("ListShares",                 route("GET", A, comp="list"),                               h.NOTHING, EMPTY,  NONE,  account_only("s", "l"),  NOT_YET, OK),
    Op("GetUserDelegationKey",       route("POST", A, comp="userdelegationkey", **SERVICE),      h.NOTHING, STREAM, NONE,  KEY_ONLY,                NOT_YET, OK),

    Op("CreateShare",                route("PUT", S, **SHARE),                                   h.NOTHING, EMPTY,  NONE,  account_only("c", "cw"), NOT_YET, CREATED),
    Op("GetShareProperties",         route("GET|HEAD", S, **SHARE),                              h.NOTHING, EMPTY,  NONE,  account_only("c", "r"),  NOT_YET, OK),
    Op("DeleteShare",                route("DELETE", S, **SHARE),                                h.NOTHING, EMPTY,  NONE,  account_only("c", "d"),  NOT_YET, ACCEPTED),
    Op("SetShareProperties",         route("PUT", S, comp="properties", **SHARE),                h.NOTHING, EMPTY,  NONE,  account_only("c", "w"),  NOT_YET, OK),
    Op("GetShareMetadata",           route("GET|HEAD", S, comp="metadata", **SHARE),             h.NOTHING, EMPTY,  NONE,  account_only("c", "r"),  NOT_YET, OK),
    Op("SetShareMetadata",           route("PUT", S, comp="metadata", **SHARE),                  h.NOTHING, EMPTY,  NONE,  account_only("c", "w"),  NOT_YET, OK),
    Op("GetShareAcl",                route("GET|HEAD", S, comp="acl", **SHARE),                  h.NOTHING, EMPTY,  NONE,  KEY_ONLY,                NOT_YET, OK),
    Op("SetShareAcl",                route("PUT", S, comp="acl", **SHARE),                       h.NOTHING, STREAM, NONE,  KEY_ONLY,                NOT_YET, OK),
    Op("GetShareStats",              route("GET", S, comp="stats", **SHARE),                     h.NOTHING, EMPTY,  NONE,  account_only("c", "r"),  NOT_YET, OK),
    Op("SnapshotShare",              route("PUT", S, comp="snapshot", **SHARE),                  h.NOTHING, EMPTY,  NONE,  account_only("c", "cw"), NOT_YET, CREATED),
    Op("LeaseShare",                 route("PUT", S, comp="lease", **SHARE),                     h.NOTHING, EMPTY,  NONE,  KEY_ONLY,                NOT_YET, OK),
    Op("RestoreShare",               route("PUT", S, comp="undelete", **SHARE),                  h.NOTHING, EMPTY,  NONE,  account_only("c", "w"),  NOT_YET, CREATED),
    Op("CreatePermission",           route("PUT", S, comp="filepermission", **SHARE),            h.NOTHING, STREAM, NONE,  WRITE,                   NOT_YET, CREATED),
    Op("GetPermission",              route("GET", S, comp="filepermission", **SHARE),            h.NOTHING, EMPTY,  NONE,  READ,                    NOT_YET, OK),

    Op("CreateDirectory",            route("PUT", P, **DIRECTORY),                               h.NOTHING, EMPTY,  NONE,  CREATE,                  NOT_YET, CREATED),
    Op("GetDirectoryProperties",     route("GET|HEAD", P, **DIRECTORY),                          h.NOTHING, EMPTY,  NONE,  READ,                    NOT_YET, OK),
    Op("DeleteDirectory",            route("DELETE", P, **DIRECTORY),                            h.NOTHING, EMPTY,  NONE,  DELETE,                  NOT_YET, ACCEPTED),
    Op("SetDirectoryProperties",     route("PUT", P, comp="properties", **DIRECTORY),            h.NOTHING, EMPTY,  NONE,  WRITE,                   NOT_YET, OK),
    Op("GetDirectoryMetadata",       route("GET|HEAD", P, comp="metadata", **DIRECTORY),         h.NOTHING, EMPTY,  NONE,  READ,                    NOT_YET, OK),
    Op("SetDirectoryMetadata",       route("PUT", P, comp="metadata", **DIRECTORY),              h.NOTHING, EMPTY,  NONE,  WRITE,                   NOT_YET, OK),
    Op("RenameDirectory",            route("PUT", P, comp="rename", **DIRECTORY),                h.NOTHING, EMPTY,  NONE,  WRITE,                   NOT_YET, OK),
    Op("ListDirectoriesAndFiles",    route("GET", P, comp="list", **DIRECTORY),                  h.NOTHING, EMPTY,  NONE,  LIST,                    NOT_YET, OK),

    Op("GetFile",                    route("GET", P),                                            h.NOTHING, EMPTY,  NONE,  sas("r"),                NOT_YET, OK),
    Op("GetFileProperties",          route("HEAD", P),                                           h.NOTHING, EMPTY,  NONE,  sas("r"),                NOT_YET, OK),
    Op("DeleteFile",                 route("DELETE", P),                                         h.NOTHING, EMPTY,  NONE,  sas("d"),                NOT_YET, ACCEPTED),
    Op("SetFileProperties",          route("PUT", P, comp="properties"),                         h.NOTHING, EMPTY,  NONE,  sas("w"),                NOT_YET, OK),
    Op("GetFileMetadata",            route("GET|HEAD", P, comp="metadata"),                      h.NOTHING, EMPTY,  NONE,  sas("r"),                NOT_YET, OK),
    Op("SetFileMetadata",            route("PUT", P, comp="metadata"),                           h.NOTHING, EMPTY,  NONE,  sas("w"),                NOT_YET, OK),
    Op("RenameFile",                 route("PUT", P, comp="rename"),                             h.NOTHING, EMPTY,  NONE,  sas("w"),                NOT_YET, OK),
    Op("LeaseFile",                  route("PUT", P, comp="lease"),                              h.NOTHING, EMPTY,  NONE,  sas("w"),                NOT_YET, OK),
    Op("CopyFile",                   route("PUT", P, x_ms_copy_source=None),                     h.NOTHING, EMPTY,  NONE,  sas("cw"),               NOT_YET, ACCEPTED),
    Op("AbortCopyFile",              route("PUT", P, comp="copy"),                               h.NOTHING, EMPTY,  NONE,  sas("w"),                NOT_YET, NO_CONTENT),
    Op("CreateFile",                 route("PUT", P, x_ms_type="file"),                          h.NOTHING, STREAM, NONE,  sas("cw"),               NOT_YET, CREATED),

    Op("PutRangeFromUrl",            route("PUT", P, comp="range", x_ms_copy_source=None),       h.NOTHING, EMPTY,  NONE,  sas("w"),                NOT_YET, CREATED),
    Op("PutRange",                   route("PUT", P, comp="range"),                              h.NOTHING, STREAM, NONE,  sas("w"),                NOT_YET, CREATED),
    Op("ListRanges",                 route("GET", P, comp="rangelist"),                          h.NOTHING, EMPTY,  NONE,  sas("r"),                NOT_YET, OK),
    Op("ListHandles",                route("GET", P, comp="listhandles"),                        h.NOTHING, EMPTY,  NONE,  KEY_ONLY,                NOT_YET, OK),
    Op("ForceCloseHandles",          route("PUT", P, comp="forceclosehandles"),                  h.NOTHING, EMPTY,  NONE,  KEY_ONLY,                NOT_YET, OK),

    Op("CreateSymbolicLink",         route("PUT", P, **SYMBOLIC_LINK),                           h.NOTHING, EMPTY,  NONE,  sas("cw"),               NOT_YET, CREATED),
    Op("GetSymbolicLink",            route("GET", P, **SYMBOLIC_LINK),                           h.NOTHING, EMPTY,  NONE,  sas("r"),                NOT_YET, OK),
    Op("CreateHardLink",             route("PUT", P, **HARD_LINK),                               h.NOTHING, EMPTY,  NONE,  sas("cw"),               NOT_YET, CREATED),
)
# fmt: on
