"""What every service function receives: the stores, the accounts, and the sources of time and ids."""

import asyncio
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

from verditer.partition.engine import Engine
from verditer.services.account import Account
from verditer.services.activity import Activity
from verditer.services.file.handles.handle import HandleTable
from verditer.services.outbound import NoSources, SourceReader
from verditer.stream.extents import ExtentStore


def new_guid() -> str:
    return str(uuid.uuid4())


@dataclass(frozen=True, kw_only=True, slots=True)
class Context:
    engine: Engine
    extents: ExtentStore
    accounts: dict[str, Account]
    inline_limit: int  # bodies up to this many bytes live beside their record
    activity: Activity = field(default_factory=Activity)
    source_reader: SourceReader = field(default_factory=NoSources)  # reads copy sources on other servers
    copy_started: asyncio.Event = field(default_factory=asyncio.Event)  # something for `jobs/copy.py` to do
    handles: HandleTable = field(default_factory=HandleTable)  # the open handles of SMB clients that this process serves
    new_guid: Callable[[], str] = new_guid
    monotonic: Callable[[], float] = time.monotonic  # how long something takes, whatever happens to the clock

    def now(self) -> int:
        return self.engine.now()
