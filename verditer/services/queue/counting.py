"""How many messages a queue holds: the sum of a few records, so that writes that add or remove a message seldom wait for each
other.

A write picks one of the queue's lanes and names the lane's scope among its own. No other write changes the lane's record
meanwhile. Consecutive writes of a process pick the same lane: engines commit them together, and so change one record.
"""

import itertools
import os
import random

from verditer.core.records.queue import MessageCount
from verditer.core.records.record import span_of
from verditer.partition.engine import Scope, Transaction

LANES = 64  # more than the transactions that PostgreSQL runs at the same time for a few processes
WRITES_IN_LANE = 8  # consecutive ones: with more of them, PostgreSQL would less often run two transactions at the same time
_writes = itertools.count(random.getrandbits(32))


def pick_lane() -> int:
    """Processes begin with different lanes: those of one parent by their ids, those of other machines by chance."""
    return (os.getpid() + next(_writes) // WRITES_IN_LANE) % LANES


def random_lane() -> int:
    """For a write that seldom counts, and should exclude no other such write."""
    return random.randrange(LANES)


def lane_scope(queue_scope: Scope, lane: int) -> Scope:
    return (*queue_scope, "lane", str(lane))


def change_count(tx: Transaction, queue_id: int, lane: int, change: int) -> None:
    """In the lane's scope, or in a scope above it."""
    current = tx.get(MessageCount, queue_id, lane)
    count = current.count + change if current is not None else change
    tx.put(MessageCount(queue_id=queue_id, lane=lane, count=count))


def message_count(tx: Transaction, queue_id: int) -> int:
    return sum(each.count for each in tx.scan(MessageCount, span_of(queue_id)))
