"""A server for tests: in memory, on free ports, in a thread of the test process, with control over its clock, data and faults.

`StorageServer` is for every test framework; `verditer.testing.plugin` has the pytest fixture. Importing this module loads nothing
of the server, because pytest imports plugins even where no test uses them.
"""

from verditer.testing.server import StorageServer

__all__ = ["StorageServer"]
