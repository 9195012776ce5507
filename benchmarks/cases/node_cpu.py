"""CPU time of the server per small request, user and system. That of PostgreSQL is not part of it."""

from collections.abc import Callable

from benchmarks import wrk
from benchmarks.benchmark import Load, Reading
from benchmarks.cases import entities, get_blob, messages, put_blob
from benchmarks.servers import Server


def of_put_blob(server: Server, load: Load) -> Reading:
    return per_request(server, put_blob.script, load)


def of_get_blob(server: Server, load: Load) -> Reading:
    return per_request(server, get_blob.script, load)


def of_insert_entity(server: Server, load: Load) -> Reading:
    return per_request(server, entities.insert_script, load)


def of_get_entity(server: Server, load: Load) -> Reading:
    return per_request(server, entities.get_script, load)


def of_put_message(server: Server, load: Load) -> Reading:
    return per_request(server, messages.put_script, load)


def per_request(server: Server, script: Callable[[], str], load: Load) -> Reading:
    before = server.cpu_seconds()
    run = wrk.run(server, script(), load)
    return Reading(value=(server.cpu_seconds() - before) / run.requests * 1e6, detail=f"{run.per_second:.0f}/s")
