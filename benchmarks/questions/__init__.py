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
from benchmarks.questions import cpu, get_blob, growth, large, list_blobs, memory, messages, put_blob, start

# fmt: off
QUESTIONS = (
    #        name                 conns  unit              budget         prepare             measure
    Question("put_blob_1k",       16,    PER_SECOND,       times(8),      create_container,   put_blob.rate),
    Question("put_blob_1k",       1,     PER_SECOND,       None,          create_container,   put_blob.rate),
    Question("get_blob_1k",       16,    PER_SECOND,       times(8),      get_blob.store,     get_blob.rate),
    Question("get_blob_1k",       1,     PER_SECOND,       None,          get_blob.store,     get_blob.rate),
    Question("list_100",          16,    PER_SECOND,       times(20),     list_blobs.store,   list_blobs.rate),
    Question("put_message",       16,    PER_SECOND,       times(8),      messages.create,    messages.put_rate, service="queue"),
    Question("message_cycle",     16,    PER_SECOND,       times(20),     messages.store,     messages.cycles, service="queue"),
    Question("cpu_put_blob_1k",   16,    CPU_MICROSECONDS, at_most(100),  create_container,   cpu.of_put),
    Question("cpu_get_blob_1k",   16,    CPU_MICROSECONDS, at_most(100),  get_blob.store,     cpu.of_get),
    Question("large_put_256m",    1,     MIB_PER_SECOND,   of_bare(0.8),  create_container,   large.put_rate),
    Question("large_get_256m",    1,     MIB_PER_SECOND,   of_bare(0.8),  large.store,        large.get_rate),
    Question("memory_idle",       0,     MEGABYTES,        at_most(80),   start.nothing,      memory.idle),
    Question("memory_after_load", 16,    MEGABYTES,        None,          create_container,   memory.after_load),
    Question("memory_streaming",  1,     MEGABYTES,        at_most(32),   create_container,   memory.while_streaming, rounds=1),
    Question("start",             0,     SECONDS,          at_most(0.5),  start.nothing,      start.on_empty_folder,  rounds=5),
)

# Asked with --million, of ourselves with few blobs and with many: each side is filled once for all of them.
GROWTH = (
    Question("grown_get",         16,    PER_SECOND,       times(1/1.5),  growth.know_names,  growth.get_rate),
    Question("grown_list_100",    16,    PER_SECOND,       times(1/1.5),  start.nothing,      growth.list_rate),
    Question("grown_put",         16,    PER_SECOND,       times(1/1.5),  start.nothing,      growth.put_rate),
    Question("grown_put_message", 16,    PER_SECOND,       times(1/1.5),  messages.grow,      messages.grown_put_rate),
    Question("grown_message_cycle", 16,  PER_SECOND,       times(1/1.5),  start.nothing,      messages.grown_cycles),
    Question("grown_start",       0,     SECONDS,          at_most(0.5),  start.nothing,      start.on_same_folder,   rounds=5),
    Question("grown_memory_idle", 0,     MEGABYTES,        at_most(80),   start.nothing,      memory.idle),
)
# fmt: on
