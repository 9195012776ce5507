"""User CPU time of the server per small request, without the time in the kernel."""

from benchmarks import wrk
from benchmarks.benchmark import Load, Reading
from benchmarks.cases import get_blob, put_blob
from benchmarks.servers import Server


def of_put(server: Server, load: Load) -> Reading:
    return per_request(server, put_blob.script(), load)


def of_get(server: Server, load: Load) -> Reading:
    return per_request(server, get_blob.script(), load)


def per_request(server: Server, script: str, load: Load) -> Reading:
    before = server.user_seconds()
    run = wrk.run(server, script, load)
    return Reading(value=(server.user_seconds() - before) / run.requests * 1e6, detail=f"{run.per_second:.0f}/s")
