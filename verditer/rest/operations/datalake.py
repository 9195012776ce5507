"""The Data Lake (dfs) operations, as an inventory. There is no dfs port yet, so nothing routes here; the list is for readers.

A filesystem is a container and a path is a blob, so the levels are theirs.
"""

from verditer.core.grant import KEY_ONLY, account_only, container_sas, sas
from verditer.core.guard import NONE
from verditer.rest.headers import fields as f
from verditer.rest.operation import EMPTY, NOT_YET, STREAM, Answer, Level, Op, route

A, F, P = Level.SERVICE, Level.CONTAINER, Level.BLOB
FILESYSTEM = {"resource": "filesystem"}
OK, CREATED, ACCEPTED = Answer(200), Answer(201), Answer(202)

# fmt: off
OPERATIONS = (
    #  name                          route                                                        takes      body    guard  allow                    call     answer
    Op("ListFilesystems",            route("GET", A, resource="account"),                         f.NOTHING, EMPTY,  NONE,  account_only("s", "l"),  NOT_YET, OK),
    Op("CreateFilesystem",           route("PUT", F, **FILESYSTEM),                               f.NOTHING, EMPTY,  NONE,  account_only("c", "cw"), NOT_YET, CREATED),
    Op("GetFilesystemProperties",    route("HEAD", F, **FILESYSTEM),                              f.NOTHING, EMPTY,  NONE,  account_only("c", "r"),  NOT_YET, OK),
    Op("SetFilesystemProperties",    route("PATCH", F, **FILESYSTEM),                             f.NOTHING, EMPTY,  NONE,  account_only("c", "w"),  NOT_YET, OK),
    Op("DeleteFilesystem",           route("DELETE", F, **FILESYSTEM),                            f.NOTHING, EMPTY,  NONE,  account_only("c", "d"),  NOT_YET, ACCEPTED),
    Op("ListPaths",                  route("GET", F, **FILESYSTEM, recursive=None),               f.NOTHING, EMPTY,  NONE,  container_sas("l"),      NOT_YET, OK),
    Op("ListDeletedPaths",           route("GET", F, restype="container", comp="list", showonly="deleted"), f.NOTHING, EMPTY, NONE, container_sas("l"), NOT_YET, OK),

    Op("CreateFile",                 route("PUT", P, resource="file"),                            f.NOTHING, EMPTY,  NONE,  sas("cw"),               NOT_YET, CREATED),
    Op("CreateDirectory",            route("PUT", P, resource="directory"),                       f.NOTHING, EMPTY,  NONE,  sas("cw"),               NOT_YET, CREATED),
    Op("RenamePath",                 route("PUT", P, x_ms_rename_source=None),                    f.NOTHING, EMPTY,  NONE,  sas("cw"),               NOT_YET, CREATED),
    Op("AppendData",                 route("PATCH", P, action="append"),                          f.NOTHING, STREAM, NONE,  sas("aw"),               NOT_YET, ACCEPTED),
    Op("FlushData",                  route("PATCH", P, action="flush"),                           f.NOTHING, EMPTY,  NONE,  sas("w"),                NOT_YET, OK),
    Op("SetPathProperties",          route("PATCH", P, action="setProperties"),                   f.NOTHING, EMPTY,  NONE,  sas("w"),                NOT_YET, OK),
    Op("SetAccessControl",           route("PATCH", P, action="setAccessControl"),                f.NOTHING, EMPTY,  NONE,  sas("p"),                NOT_YET, OK),
    Op("SetAccessControlRecursive",  route("PATCH", P, action="setAccessControlRecursive"),       f.NOTHING, EMPTY,  NONE,  sas("p"),                NOT_YET, OK),
    Op("LeasePath",                  route("POST", P, x_ms_lease_action=None),                    f.NOTHING, EMPTY,  NONE,  sas("w"),                NOT_YET, OK),
    Op("ReadPath",                   route("GET", P),                                             f.NOTHING, EMPTY,  NONE,  sas("r"),                NOT_YET, OK),
    Op("GetPathStatus",              route("HEAD", P, action="getStatus"),                        f.NOTHING, EMPTY,  NONE,  sas("e"),                NOT_YET, OK),
    Op("GetAccessControl",           route("HEAD", P, action="getAccessControl"),                 f.NOTHING, EMPTY,  NONE,  sas("e"),                NOT_YET, OK),
    Op("GetPathProperties",          route("HEAD", P),                                            f.NOTHING, EMPTY,  NONE,  sas("r"),                NOT_YET, OK),
    Op("DeletePath",                 route("DELETE", P),                                          f.NOTHING, EMPTY,  NONE,  sas("d"),                NOT_YET, OK),
    Op("SetPathExpiry",              route("PUT", P, comp="expiry"),                              f.NOTHING, EMPTY,  NONE,  sas("w"),                NOT_YET, OK),
    Op("UndeletePath",               route("PUT", P, comp="undelete"),                            f.NOTHING, EMPTY,  NONE,  KEY_ONLY,                NOT_YET, OK),
)
# fmt: on
