"""The Table service, operation by operation. `PATCH` and `MERGE` are one verb, and either may come tunnelled through `POST`."""

from verditer.core.grant import ANY, KEY_ONLY, account_only, entity_sas
from verditer.core.guard import NONE
from verditer.core.limits import MAX_TABLE_BODY, MAX_XML
from verditer.rest import headers as h
from verditer.rest.changesets import batch_of
from verditer.rest.codecs.entities import (
    render_created_table,
    render_deleted,
    render_entity,
    render_inserted,
    render_page,
    render_table,
    render_tables,
    render_updated,
)
from verditer.rest.codecs.json import parse_entity, parse_new_entity, parse_new_table
from verditer.rest.codecs.odata import accept_created, accept_json, accept_sent, accept_upsert
from verditer.rest.codecs.policies import parse_policies, render_policy_list
from verditer.rest.codecs.properties import parse_properties, render_properties, render_stats
from verditer.rest.encode import as_it_is
from verditer.rest.operation import EMPTY, STREAM, Answer, Level, Op, document, route
from verditer.services import properties
from verditer.services.table import entities, query, tables

S, TS, T, ES, E, B = Level.SERVICE, Level.TABLES, Level.TABLE, Level.ENTITIES, Level.ENTITY, Level.BATCH
SERVICE = {"restype": "service"}
PROPERTIES = document(parse_properties, MAX_XML)
POLICIES = document(parse_policies, MAX_XML)
NEW_TABLE = document(parse_new_table, MAX_TABLE_BODY)
NEW_ENTITY = document(parse_new_entity, MAX_TABLE_BODY)
ENTITY = document(parse_entity, MAX_TABLE_BODY)
ADD_AND_UPDATE = entity_sas("au")
UPDATED = Answer(204, body=render_updated)
ACL = Answer(200, body=lambda policies, exchange: render_policy_list(policies))

# fmt: off
ENTITY_OPERATIONS = (
    #  name                       route                                 takes          body         guard  allow            call                      answer                                accepts
    Op("QueryEntities",           route("GET", ES),                     h.ENTITY_PAGE, EMPTY,       NONE,  entity_sas("r"), query.query_entities,     Answer(200, body=render_page),        accept_json),
    Op("GetEntity",               route("GET", E),                      h.NOTHING,     EMPTY,       NONE,  entity_sas("r"), entities.get_entity,      Answer(200, body=render_entity),      accept_json),
    Op("InsertEntity",            route("POST", ES),                    h.NO_MATCH,    NEW_ENTITY,  NONE,  entity_sas("a"), entities.insert_entity,   Answer(201, body=render_inserted),    accept_created),
    Op("UpdateEntity",            route("PUT", E, if_match=None),       h.MATCH,       ENTITY,      NONE,  entity_sas("u"), entities.replace_entity,  UPDATED,                              accept_sent),
    Op("InsertOrReplaceEntity",   route("PUT", E),                      h.UPSERT,      ENTITY,      NONE,  ADD_AND_UPDATE,  entities.replace_entity,  UPDATED,                              accept_upsert),
    Op("MergeEntity",             route("MERGE|PATCH", E, if_match=None), h.MATCH,     ENTITY,      NONE,  entity_sas("u"), entities.merge_entity,    UPDATED,                              accept_sent),
    Op("InsertOrMergeEntity",     route("MERGE|PATCH", E),              h.UPSERT,      ENTITY,      NONE,  ADD_AND_UPDATE,  entities.merge_entity,    UPDATED,                              accept_upsert),
    Op("DeleteEntity",            route("DELETE", E),                   h.MATCH,       EMPTY,       NONE,  entity_sas("d"), entities.delete_entity,   Answer(204, body=render_deleted)),
)

OPERATIONS = (
    Op("GetTableServiceProperties", route("GET", S, comp="properties", **SERVICE), h.NOTHING, EMPTY, NONE, account_only("s", "r"), properties.get_service_properties, Answer(200, body=render_properties)),
    Op("SetTableServiceProperties", route("PUT", S, comp="properties", **SERVICE), h.NOTHING, PROPERTIES, NONE, account_only("s", "w"), properties.set_service_properties, Answer(202)),
    Op("GetTableServiceStats",    route("GET", S, comp="stats", **SERVICE), h.NOTHING, EMPTY,       NONE,  account_only("s", "r"), properties.get_service_stats, Answer(200, body=render_stats)),

    Op("QueryTables",             route("GET", TS),                     h.TABLE_PAGE,  EMPTY,       NONE,  account_only("c", "l"),  tables.query_tables,  Answer(200, body=render_tables),        accept_json),
    Op("CreateTable",             route("POST", TS),                    h.NOTHING,     NEW_TABLE,   NONE,  account_only("c", "cw"), tables.create_table,  Answer(201, body=render_created_table), accept_created),
    Op("GetTable",                route("GET", T),                      h.NOTHING,     EMPTY,       NONE,  account_only("c", "l"),  tables.get_table,     Answer(200, body=render_table),         accept_json),
    Op("DeleteTable",             route("DELETE", T),                   h.NOTHING,     EMPTY,       NONE,  account_only("c", "d"),  tables.delete_table,  Answer(204, body=render_deleted)),
    Op("GetTableAcl",             route("GET|HEAD", ES, comp="acl"),    h.NOTHING,     EMPTY,       NONE,  KEY_ONLY,                tables.get_table_acl, ACL),
    Op("SetTableAcl",             route("PUT", ES, comp="acl"),         h.NOTHING,     POLICIES,    NONE,  KEY_ONLY,                tables.set_table_acl, Answer(204)),

    *ENTITY_OPERATIONS,
    Op("EntityGroupTransaction",  route("POST", B),                     h.NOTHING,     STREAM,      NONE,  ANY,                     batch_of(ENTITY_OPERATIONS), Answer(202, body=as_it_is)),
)
# fmt: on
