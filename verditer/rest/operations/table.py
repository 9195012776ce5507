"""The Table service: one row for each operation. `PATCH` and `MERGE` are one verb, and `POST` may stand for either."""

from verditer.core.grant import ANY, KEY_ONLY, account_only, entity_sas
from verditer.core.guard import NONE
from verditer.core.limits import MAX_TABLE_BODY, MAX_XML
from verditer.core.records.container import AccessPolicy
from verditer.rest.batches.changesets import batch_of
from verditer.rest.codecs.policies import parse_policies, render_policy_list
from verditer.rest.codecs.properties import parse_properties, render_properties, render_stats
from verditer.rest.codecs.table.entities import (
    render_created_table,
    render_deleted,
    render_entity,
    render_inserted,
    render_page,
    render_table,
    render_tables,
    render_updated,
)
from verditer.rest.codecs.table.json import parse_entity, parse_new_entity, parse_new_table
from verditer.rest.codecs.table.odata import accept_created, accept_json, accept_sent, accept_upsert
from verditer.rest.headers import fields as f
from verditer.rest.operation import EMPTY, STREAM, Answer, Level, Op, document, route
from verditer.rest.stages import Decoded
from verditer.rest.steps.encode import passthrough
from verditer.services import properties
from verditer.services.table import entities, query, tables

S, TS, T, ES, E, B = Level.SERVICE, Level.TABLES, Level.TABLE, Level.ENTITIES, Level.ENTITY, Level.BATCH
BELOW = Level.BELOW_TABLE
SERVICE = {"restype": "service"}
PROPERTIES = document(parse_properties, MAX_XML)
POLICIES = document(parse_policies, MAX_XML)
NEW_TABLE = document(parse_new_table, MAX_TABLE_BODY)
NEW_ENTITY = document(parse_new_entity, MAX_TABLE_BODY)
ENTITY = document(parse_entity, MAX_TABLE_BODY)


def render_acl(policies: tuple[AccessPolicy, ...], decoded: Decoded) -> bytes:
    return render_policy_list(policies)


ADD_AND_UPDATE = entity_sas("au")
UPDATED = Answer(204, body=render_updated)
ACL = Answer(200, body=render_acl)

# fmt: off
ENTITY_OPERATIONS = (
    #  name                       route                                 takes          body         guard  allow            call                      answer                                accepts
    Op("QueryEntities",           route("GET", ES),                     f.ENTITY_PAGE, EMPTY,       NONE,  entity_sas("r"), query.query_entities,     Answer(200, body=render_page),        accept_json),
    Op("GetEntity",               route("GET", E),                      f.NOTHING,     EMPTY,       NONE,  entity_sas("r"), entities.get_entity,      Answer(200, body=render_entity),      accept_json),
    Op("InsertEntity",            route("POST", ES),                    f.NO_MATCH,    NEW_ENTITY,  NONE,  entity_sas("a"), entities.insert_entity,   Answer(201, body=render_inserted),    accept_created, check_target=tables.check_table),
    Op("InsertEntity",            route("POST", BELOW),                 f.NO_MATCH,    NEW_ENTITY,  NONE,  entity_sas("a"), entities.insert_entity,   Answer(201, body=render_inserted),    accept_created, check_target=tables.check_table),
    Op("UpdateEntity",            route("PUT", E, if_match=None),       f.MATCH,       ENTITY,      NONE,  entity_sas("u"), entities.replace_entity,  UPDATED,                              accept_sent),
    Op("InsertOrReplaceEntity",   route("PUT", E),                      f.UPSERT,      ENTITY,      NONE,  ADD_AND_UPDATE,  entities.replace_entity,  UPDATED,                              accept_upsert),
    Op("MergeEntity",             route("MERGE|PATCH", E, if_match=None), f.MATCH,     ENTITY,      NONE,  entity_sas("u"), entities.merge_entity,    UPDATED,                              accept_sent),
    Op("InsertOrMergeEntity",     route("MERGE|PATCH", E),              f.UPSERT,      ENTITY,      NONE,  ADD_AND_UPDATE,  entities.merge_entity,    UPDATED,                              accept_upsert),
    Op("DeleteEntity",            route("DELETE", E),                   f.MATCH,       EMPTY,       NONE,  entity_sas("d"), entities.delete_entity,   Answer(204, body=render_deleted)),
)

OPERATIONS = (
    Op("GetTableServiceProperties", route("GET", S, comp="properties", **SERVICE), f.NOTHING, EMPTY, NONE, account_only("s", "r"), properties.get_service_properties, Answer(200, body=render_properties)),
    Op("SetTableServiceProperties", route("PUT", S, comp="properties", **SERVICE), f.NOTHING, PROPERTIES, NONE, account_only("s", "w"), properties.set_service_properties, Answer(202)),
    Op("GetTableServiceStats",    route("GET", S, comp="stats", **SERVICE), f.NOTHING, EMPTY,       NONE,  account_only("s", "r"), properties.get_service_stats, Answer(200, body=render_stats)),

    Op("QueryTables",             route("GET", TS),                     f.TABLE_PAGE,  EMPTY,       NONE,  account_only("c", "l"),  tables.query_tables,  Answer(200, body=render_tables),        accept_json),
    Op("CreateTable",             route("POST", TS),                    f.NOTHING,     NEW_TABLE,   NONE,  account_only("c", "cw"), tables.create_table,  Answer(201, body=render_created_table), accept_created),
    Op("GetTable",                route("GET", T),                      f.NOTHING,     EMPTY,       NONE,  account_only("c", "l"),  tables.get_table,     Answer(200, body=render_table),         accept_json),
    Op("DeleteTable",             route("DELETE", T),                   f.NOTHING,     EMPTY,       NONE,  account_only("c", "d"),  tables.delete_table,  Answer(204, body=render_deleted)),
    Op("GetTableAcl",             route("GET|HEAD", ES, comp="acl"),    f.NOTHING,     EMPTY,       NONE,  KEY_ONLY,                tables.get_table_acl, ACL),
    Op("SetTableAcl",             route("PUT", ES, comp="acl"),         f.NOTHING,     POLICIES,    NONE,  KEY_ONLY,                tables.set_table_acl, Answer(204)),

    *ENTITY_OPERATIONS,
    Op("QueryEntities",           route("GET", BELOW),                  f.NOTHING,     EMPTY,       NONE,  entity_sas("r"), tables.query_below_table,  Answer(200)),
    Op("DeleteEntity",            route("DELETE", BELOW),               f.NOTHING,     EMPTY,       NONE,  entity_sas("d"), tables.delete_below_table, Answer(204)),
    Op("EntityGroupTransaction",  route("POST", B),                     f.NOTHING,     STREAM,      NONE,  ANY,                     batch_of(ENTITY_OPERATIONS), Answer(202, body=passthrough)),
)
# fmt: on
