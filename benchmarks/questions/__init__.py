"""The questions, one table: start reading here. Each row's functions are in the file of its subject.

Budgets are the design's: at 16 connections 8 times Azurite for a small Put or Get and 20 times for a list page; a large blob at
80 % of a bare loop; 80 MB idle; ready in half a second; a million blobs cost at most 1.5 times what a thousand cost.
"""

from benchmarks.client import create_container
from benchmarks.question import (
    CPU_MICROSECONDS,
    MEGABYTES,
    MIB_PER_SECOND,
    PER_SECOND,
    SECONDS,
    Question,
    at_most,
    of_bare,
    times,
)
from benchmarks.questions import (
    append,
    copy_blob,
    cpu,
    entities,
    get_blob,
    growth,
    large,
    list_blobs,
    memory,
    messages,
    page,
    put_blob,
    start,
    tags,
    upserts,
)

PSS = (
    "By PSS. Verditer serves with several forked processes, and a page of memory that they share counts once, as it takes up "
    "room once; budgets are held against this. The sum of RSS, shown beside it, counts such a page once for each process. "
    "A page shared with other programs, such as the Python binary, counts in part by PSS and in full by RSS."
)

TABLE = "table"

# fmt: off
QUESTIONS = (
    #        name                 conns  unit              budget         prepare             measure
    Question("put_blob_1k",       16,    PER_SECOND,       times(8),      create_container,   put_blob.rate),
    Question("put_blob_1k",       1,     PER_SECOND,       None,          create_container,   put_blob.rate),
    Question("get_blob_1k",       16,    PER_SECOND,       times(8),      get_blob.store,     get_blob.rate),
    Question("get_blob_1k",       1,     PER_SECOND,       None,          get_blob.store,     get_blob.rate),
    Question("list_100",          16,    PER_SECOND,       times(20),     list_blobs.store,   list_blobs.rate),
    Question("append_1k_own",     16,    PER_SECOND,       None,          append.prepare,     append.rate_to_own),
    Question("append_1k_shared",  16,    PER_SECOND,       None,          append.prepare,     append.rate_to_shared),
    Question("put_page_512",      16,    PER_SECOND,       None,          page.prepare,       page.rate_of_512),
    Question("put_page_4k",       16,    PER_SECOND,       None,          page.prepare,       page.rate_of_4k),
    Question("copy_blob_1k",      16,    PER_SECOND,       None,          copy_blob.store_small, copy_blob.rate),
    Question("copy_blob_64m",     1,     PER_SECOND,       None,          copy_blob.store_large, copy_blob.rate),
    Question("set_tags",          16,    PER_SECOND,       None,          tags.store,         tags.set_rate),
    Question("find_by_tags_1000", 16,    PER_SECOND,       None,          tags.store_many,    tags.find_rate),
    Question("put_message",       16,    PER_SECOND,       times(8),      messages.create,    messages.put_rate, service="queue"),
    Question("message_cycle",     16,    PER_SECOND,       times(20),     messages.store,     messages.cycles, service="queue"),
    Question("insert_entity",     16,    PER_SECOND,       times(4),      entities.create,    entities.insert_rate, TABLE),
    Question("get_entity",        16,    PER_SECOND,       times(4),      entities.store,     entities.get_rate, TABLE),
    Question("query_100_of_1k",   16,    PER_SECOND,       times(5),      entities.store,     entities.filtered_rate, TABLE),
    Question("query_100_of_10k",  16,    PER_SECOND,       times(5),      entities.store_more, entities.filtered_rate, TABLE),
    Question("query_1000",        16,    PER_SECOND,       times(5),      entities.store,     entities.page_rate, TABLE),
    Question("batch_100",         16,    PER_SECOND,       times(10),     entities.create,    entities.batch_rate, TABLE),
    Question("sdk_upserts_100k",  1,     SECONDS,          at_most(120),  entities.create,    upserts.seconds, TABLE, rounds=1),
    Question("cpu_put_blob_1k",   16,    CPU_MICROSECONDS, at_most(100),  create_container,   cpu.of_put),
    Question("cpu_get_blob_1k",   16,    CPU_MICROSECONDS, at_most(100),  get_blob.store,     cpu.of_get),
    Question("large_put_256m",    1,     MIB_PER_SECOND,   of_bare(0.8),  create_container,   large.put_rate,    rounds=5),
    Question("large_get_256m",    1,     MIB_PER_SECOND,   of_bare(0.8),  large.store,        large.get_rate,    rounds=5),
    Question("memory_idle",       0,     MEGABYTES,        at_most(80),   start.nothing,      memory.idle,       note=PSS),
    Question("memory_idle_rss_sum", 0,   MEGABYTES,        None,          start.nothing,      memory.idle_resident),
    Question("memory_after_load", 16,    MEGABYTES,        None,          create_container,   memory.after_load, note=PSS),
    Question("memory_streaming",  1,     MEGABYTES,        at_most(32),   create_container,   memory.peak, rounds=1, note=PSS),
    Question("start",             0,     SECONDS,          at_most(0.5),  start.nothing,      start.on_empty_folder,  rounds=5),
)

# Asked with --million, of ourselves with few blobs and with many: each side is filled once for all of them.
GROWTH = (
    Question("grown_get",         16,    PER_SECOND,       times(1/1.5),  start.nothing,      growth.get_rate),
    Question("grown_list_100",    16,    PER_SECOND,       times(1/1.5),  start.nothing,      growth.list_rate),
    Question("grown_list_folder", 16,    PER_SECOND,       times(1/1.5),  start.nothing,      growth.folder_rate),
    Question("grown_find_by_tags", 16,   PER_SECOND,       times(1/1.5),  start.nothing,      growth.find_rate),
    Question("grown_put",         16,    PER_SECOND,       times(1/1.5),  start.nothing,      growth.put_rate),
    Question("grown_put_message", 16,    PER_SECOND,       times(1/1.5),  messages.grow,      messages.grown_put_rate),
    Question("grown_message_cycle", 16,  PER_SECOND,       times(1/1.5),  start.nothing,      messages.grown_cycles),
    Question("grown_get_entity",  16,    PER_SECOND,       times(1/1.5),  entities.grow,      entities.grown_get_rate),
    Question("grown_query_1000",  16,    PER_SECOND,       times(1/1.5),  start.nothing,      entities.grown_page_rate),
    Question("grown_batch_100",   16,    PER_SECOND,       times(1/1.5),  start.nothing,      entities.grown_batch_rate),
    Question("grown_start",       0,     SECONDS,          at_most(0.5),  start.nothing,      start.on_same_folder,   rounds=5),
    Question("grown_memory_idle", 0,     MEGABYTES,        at_most(80),   start.nothing,      memory.idle,       note=PSS),
    Question("grown_memory_idle_rss_sum", 0, MEGABYTES,    None,          start.nothing,      memory.idle_resident),
)

# Asked with --entities, of ourselves with ten thousand entities and with many; there is nothing else in these stores.
TABLE_GROWTH = (
    Question("grown_get_entity",  16,    PER_SECOND,       times(1/1.5),  start.nothing,      entities.grown_get_rate),
    Question("grown_query_1000",  16,    PER_SECOND,       times(1/1.5),  start.nothing,      entities.grown_page_rate),
    Question("grown_insert_entity", 16,  PER_SECOND,       times(1/1.5),  start.nothing,      entities.grown_insert_rate),
)
# fmt: on
