"""Run a function in a process of its own that shares nothing with the test process.

Test processes run servers in threads. A fork of such a process can inherit a lock that one of these threads holds, and then waits
for it for ever. A process that was started afresh has one thread, so the function may fork.
"""

import multiprocessing
from collections.abc import Callable

SECONDS = 240.0


def run_in_fresh_process(function: Callable[..., None], *arguments: object) -> None:
    """The function is defined at the top level of its module. An exception in it, or one that never ends, fails the test."""
    process = multiprocessing.get_context("spawn").Process(target=function, args=arguments)
    process.start()
    process.join(SECONDS)
    if process.is_alive():
        process.kill()
        process.join()
    assert process.exitcode == 0
