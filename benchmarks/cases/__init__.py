"""The table of benchmarks: start reading here. The functions of a row are in the module of its subject.

The budgets come from the design: at 16 connections 8 times Azurite for a small Put or Get and 20 times for a list page; a large
blob at 80 % of a minimal loop; 80 MB idle; ready in half a second; a million blobs cost at most 1.5 times what a thousand cost.
A small file, which takes two requests, has half the rate of a blob, and reading and listing files 80 % of that of blobs. Over SMB
a large file at 70 % of Samba, encrypted at 50 %, and small requests at 25 %.
"""

from benchmarks.benchmark import (
    CPU_MICROSECONDS,
    MEGABYTES,
    MIB_PER_SECOND,
    PER_SECOND,
    SECONDS,
    Benchmark,
    at_most,
    of_bare,
    times,
)
from benchmarks.cases import (
    append,
    copy_blob,
    cpu,
    entities,
    file_growth,
    files,
    get_blob,
    growth,
    large,
    large_files,
    list_blobs,
    memory,
    messages,
    node_cpu,
    page,
    put_blob,
    smb,
    start,
    tags,
    upserts,
)
from benchmarks.client import create_container

PSS = (
    "Measured as PSS, which the budgets refer to. Verditer runs several forked processes; PSS counts a page of memory that they "
    "share once. The sum of RSS counts such a page once per process. A page shared with other programs, such as the Python "
    "binary, counts partly in PSS and fully in RSS."
)

QUEUE, TABLE, ON_SMB = "queue", "table", "smb"

# fmt: off
BENCHMARKS = (
    #         name                conns  unit              budget         prepare             measure
    Benchmark("put_blob_1k",       16,    PER_SECOND,       times(8),      create_container,   put_blob.rate),
    Benchmark("put_blob_1k",       1,     PER_SECOND,       None,          create_container,   put_blob.rate),
    Benchmark("get_blob_1k",       16,    PER_SECOND,       times(8),      get_blob.store,     get_blob.rate),
    Benchmark("get_blob_1k",       1,     PER_SECOND,       None,          get_blob.store,     get_blob.rate),
    Benchmark("list_100",          16,    PER_SECOND,       times(20),     list_blobs.store,   list_blobs.rate),
    Benchmark("append_1k_own",     16,    PER_SECOND,       None,          append.prepare,     append.rate_to_own),
    Benchmark("append_1k_shared",  16,    PER_SECOND,       None,          append.prepare,     append.rate_to_shared),
    Benchmark("put_page_512",      16,    PER_SECOND,       None,          page.prepare,       page.rate_of_512),
    Benchmark("put_page_4k",       16,    PER_SECOND,       None,          page.prepare,       page.rate_of_4k),
    Benchmark("copy_blob_1k",      16,    PER_SECOND,       None,          copy_blob.store_small, copy_blob.rate),
    Benchmark("copy_blob_64m",     1,     PER_SECOND,       None,          copy_blob.store_large, copy_blob.rate),
    Benchmark("set_tags",          16,    PER_SECOND,       None,          tags.store,         tags.set_rate),
    Benchmark("find_by_tags_1000", 16,    PER_SECOND,       None,          tags.store_many,    tags.find_rate),
    Benchmark("put_message",       16,    PER_SECOND,       times(8),      messages.create,    messages.put_rate, QUEUE),
    Benchmark("message_cycle",     16,    PER_SECOND,       times(20),     messages.store,     messages.cycles, QUEUE),
    Benchmark("insert_entity",     16,    PER_SECOND,       times(4),      entities.create,    entities.insert_rate, TABLE),
    Benchmark("get_entity",        16,    PER_SECOND,       times(4),      entities.store,     entities.get_rate, TABLE),
    Benchmark("query_100_of_1k",   16,    PER_SECOND,       times(5),      entities.store,     entities.filtered_rate, TABLE),
    Benchmark("query_100_of_10k",  16,    PER_SECOND,       times(5),      entities.store_more, entities.filtered_rate, TABLE),
    Benchmark("query_1000",        16,    PER_SECOND,       times(5),      entities.store,     entities.page_rate, TABLE),
    Benchmark("batch_100",         16,    PER_SECOND,       times(10),     entities.create,    entities.batch_rate, TABLE),
    Benchmark("sdk_upserts_100k",  1,     SECONDS,          at_most(120),  entities.create,    upserts.seconds, TABLE, rounds=1),
    Benchmark("cpu_put_blob_1k",   16,    CPU_MICROSECONDS, at_most(100),  create_container,   cpu.of_put),
    Benchmark("cpu_get_blob_1k",   16,    CPU_MICROSECONDS, at_most(100),  get_blob.store,     cpu.of_get),
    Benchmark("large_put_256m",    1,     MIB_PER_SECOND,   of_bare(0.8),  create_container,   large.put_rate,    rounds=5),
    Benchmark("large_get_256m",    1,     MIB_PER_SECOND,   of_bare(0.8),  large.store,        large.get_rate,    rounds=5),
    Benchmark("memory_idle",       0,     MEGABYTES,        at_most(80),   start.nothing,      memory.idle,       note=PSS),
    Benchmark("memory_idle_rss_sum", 0,   MEGABYTES,        None,          start.nothing,      memory.idle_resident),
    Benchmark("memory_after_load", 16,    MEGABYTES,        None,          create_container,   memory.after_load, note=PSS),
    Benchmark("memory_streaming",  1,     MEGABYTES,        at_most(32),   create_container,   memory.peak, rounds=1, note=PSS),
    Benchmark("start",             0,     SECONDS,          at_most(0.5),  start.nothing,      start.on_empty_folder,  rounds=5),
)

# Verditer's files beside its own blobs: no other server has files.
FILES = (
    Benchmark("write_file_1k",     16,    PER_SECOND,       times(0.5),    files.prepare,      files.write_rate),
    Benchmark("get_file_1k",       16,    PER_SECOND,       times(0.8),    files.store,        files.get_rate),
    Benchmark("list_files_100",    16,    PER_SECOND,       times(0.8),    files.store,        files.list_rate),
    Benchmark("large_file_put_256m", 1,   MIB_PER_SECOND,   of_bare(0.8),  files.prepare,      large_files.put_rate, rounds=5),
    Benchmark("large_file_get_256m", 1,   MIB_PER_SECOND,   of_bare(0.8),  large_files.store,  large_files.get_rate, rounds=5),
)

# Verditer's shares over SMB beside Samba.
SMB = (
    Benchmark("smb_read_256m",     1,     MIB_PER_SECOND,   times(0.7),    smb.store_large,    smb.read_rate, ON_SMB, 5),
    Benchmark("smb_write_256m",    1,     MIB_PER_SECOND,   times(0.7),    smb.prepare,        smb.write_rate, ON_SMB, 5),
    Benchmark("smb_read_encrypted", 1,   MIB_PER_SECOND,   times(0.5),   smb.store_large,    smb.read_encrypted_rate, ON_SMB, 5),
    Benchmark("smb_open_close",    8,     PER_SECOND,       times(0.25),   smb.store_small,    smb.open_close_rate, ON_SMB),
    Benchmark("smb_read_4k",       8,     PER_SECOND,       times(0.25),   smb.store_small,    smb.read_4k_rate, ON_SMB),
    Benchmark("smb_write_4k",      8,     PER_SECOND,       times(0.25),   smb.store_small,    smb.write_4k_rate, ON_SMB),
    Benchmark("smb_list_1000",     8,     PER_SECOND,       times(0.25),   smb.store_small,    smb.list_rate, ON_SMB),
    Benchmark("smb_memory_streaming", 1,  MEGABYTES,        at_most(32),   smb.prepare,        smb.memory_peak, ON_SMB, 1, PSS),
)

# Run with --million: Verditer with few files in one directory and with many.
FILE_GROWTH = (
    Benchmark("grown_get_file",    16,    PER_SECOND,       times(1/1.5),  start.nothing,      file_growth.get_rate),
    Benchmark("grown_list_files_100", 16, PER_SECOND,       times(1/1.5),  start.nothing,      file_growth.list_rate),
    Benchmark("grown_create_file", 16,    PER_SECOND,       times(1/1.5),  start.nothing,      file_growth.replace_rate),
)

# Run with --million: Verditer with files in a directory of the root, and with files many directories below it.
FILE_DEPTH = (
    Benchmark("deep_get_file",     16,    PER_SECOND,       times(1/1.5),  start.nothing,      file_growth.deep_get_rate),
    Benchmark("deep_list_files_100", 16,  PER_SECOND,       times(1/1.5),  start.nothing,      file_growth.deep_list_rate),
    Benchmark("deep_create_file",  16,    PER_SECOND,       times(1/1.5),  start.nothing,      file_growth.deep_create_rate),
)

# Run with --million: Verditer with few blobs and with many. Each server is filled once for all benchmarks.
GROWTH = (
    Benchmark("grown_get",         16,    PER_SECOND,       times(1/1.5),  start.nothing,      growth.get_rate),
    Benchmark("grown_list_100",    16,    PER_SECOND,       times(1/1.5),  start.nothing,      growth.list_rate),
    Benchmark("grown_list_folder", 16,    PER_SECOND,       times(1/1.5),  start.nothing,      growth.folder_rate),
    Benchmark("grown_find_by_tags", 16,   PER_SECOND,       times(1/1.5),  start.nothing,      growth.find_rate),
    Benchmark("grown_put",         16,    PER_SECOND,       times(1/1.5),  start.nothing,      growth.put_rate),
    Benchmark("grown_put_message", 16,    PER_SECOND,       times(1/1.5),  messages.grow,      messages.grown_put_rate),
    Benchmark("grown_message_cycle", 16,  PER_SECOND,       times(1/1.5),  start.nothing,      messages.grown_cycles),
    Benchmark("grown_get_entity",  16,    PER_SECOND,       times(1/1.5),  entities.grow,      entities.grown_get_rate),
    Benchmark("grown_query_1000",  16,    PER_SECOND,       times(1/1.5),  start.nothing,      entities.grown_page_rate),
    Benchmark("grown_batch_100",   16,    PER_SECOND,       times(1/1.5),  start.nothing,      entities.grown_batch_rate),
    Benchmark("grown_start",       0,     SECONDS,          at_most(0.5),  start.nothing,      start.on_same_folder,   rounds=5),
    Benchmark("grown_memory_idle", 0,     MEGABYTES,        at_most(80),   start.nothing,      memory.idle,       note=PSS),
    Benchmark("grown_memory_idle_rss_sum", 0, MEGABYTES,    None,          start.nothing,      memory.idle_resident),
)

# Run with --entities: Verditer with ten thousand entities and with many. These servers store nothing else.
TABLE_GROWTH = (
    Benchmark("grown_get_entity",  16,    PER_SECOND,       times(1/1.5),  start.nothing,      entities.grown_get_rate),
    Benchmark("grown_query_1000",  16,    PER_SECOND,       times(1/1.5),  start.nothing,      entities.grown_page_rate),
    Benchmark("grown_insert_entity", 16,  PER_SECOND,       times(1/1.5),  start.nothing,      entities.grown_insert_rate),
)

# What a node on PostgreSQL keeps of the embedded store with one worker. Rates vary with the load of the machine, and PostgreSQL
# needs CPU of its own; CPU time of our process is the solid figure. `benchmarks.nodes` measures two nodes.
ON_POSTGRES = (
    Benchmark("put_blob_1k",       16,    PER_SECOND,       times(0.4),    create_container,   put_blob.rate),
    Benchmark("get_blob_1k",       16,    PER_SECOND,       times(0.4),    get_blob.store,     get_blob.rate),
    Benchmark("insert_entity",     16,    PER_SECOND,       times(0.4),    entities.create,    entities.insert_rate, TABLE),
    Benchmark("get_entity",        16,    PER_SECOND,       times(0.4),    entities.store,     entities.get_rate, TABLE),
    Benchmark("put_message",       16,    PER_SECOND,       times(0.4),    messages.create,    messages.put_rate, QUEUE),
    Benchmark("message_cycle",     16,    PER_SECOND,       times(0.4),    messages.store,     messages.cycles, QUEUE),
    Benchmark("node_cpu_put_blob_1k", 16, CPU_MICROSECONDS, times(0.5),    create_container,   node_cpu.of_put_blob),
    Benchmark("node_cpu_get_blob_1k", 16, CPU_MICROSECONDS, times(0.5),    get_blob.store,     node_cpu.of_get_blob),
    Benchmark("node_cpu_insert_entity", 16, CPU_MICROSECONDS, times(0.5),  entities.create,    node_cpu.of_insert_entity, TABLE),
    Benchmark("node_cpu_get_entity", 16,  CPU_MICROSECONDS, times(0.5),    entities.store,     node_cpu.of_get_entity, TABLE),
    Benchmark("node_cpu_put_message", 16, CPU_MICROSECONDS, times(0.5),    messages.create,    node_cpu.of_put_message, QUEUE),
)
ON_S3 = (
    Benchmark("large_put_256m",    1,     MIB_PER_SECOND,   None,          create_container,   large.put_rate),
    Benchmark("large_get_256m",    1,     MIB_PER_SECOND,   None,          large.store,        large.get_rate),
)
# fmt: on
