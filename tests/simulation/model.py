"""A model of a blob container in a few dictionaries, based only on the contract and on Microsoft's tables.

Each operation returns the required outcome ("412 LeaseIdMissing") and changes the model accordingly. The model has its own time
in seconds; ETags are taken from the server.
"""

import math
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Lease:
    id: str
    seconds: float
    expires: float
    breaks: float | None = None


@dataclass(frozen=True)
class Version:
    data: bytes
    meta: str
    etag: str


@dataclass
class Entry:
    """Everything under one name. A name with only staged blocks is not a blob yet."""

    now: Version | None = None
    lease: Lease | None = None
    committed: dict[str, bytes] = field(default_factory=dict)
    staged: dict[str, bytes] = field(default_factory=dict)
    snapshots: dict[str, Version] = field(default_factory=dict)


class Refused(Exception):
    pass


class Model:
    def __init__(self, names: list[str]) -> None:
        self.time = 0.0
        self.entries = {name: Entry() for name in names}

    # Operations. `stamp` sets `etag` to the value from the server.

    def put(self, name: str, data: bytes, lease: str | None, if_match: str | None, if_none: bool) -> None:
        entry = self.entries[name]
        self._guard_write(entry, lease, if_match, if_none)
        self._replace(entry, data, "")
        entry.committed = {}

    def stage(self, name: str, block: str, data: bytes, lease: str | None) -> None:
        entry = self.entries[name]
        self._check_lease(entry, lease, writes=True)
        entry.staged[block] = data

    def commit(self, name: str, blocks: list[str], lease: str | None, if_match: str | None, if_none: bool) -> None:
        entry = self.entries[name]
        self._guard_write(entry, lease, if_match, if_none)
        known = entry.committed | entry.staged
        if any(block not in known for block in blocks):
            raise Refused("400 InvalidBlockList")
        self._replace(entry, b"".join(known[block] for block in blocks), "")
        entry.committed = {block: known[block] for block in blocks}

    def set_metadata(self, name: str, meta: str, lease: str | None, if_match: str | None) -> None:
        entry, version = self._existing(name)
        self._guard_write(entry, lease, if_match, False)
        entry.now = replace(version, meta=meta)
        self._forget_ended_lease(entry)

    def get(self, name: str, snapshot: str | None, lease: str | None, if_none_etag: str | None) -> Version:
        entry, version = self._existing(name, snapshot)
        self._check_lease(entry if snapshot is None else Entry(now=version), lease, writes=False)
        if if_none_etag == version.etag:
            raise Refused("304 ConditionNotMet")
        return version

    def snapshot(self, name: str, lease: str | None) -> Version:
        entry, version = self._existing(name)
        self._check_lease(entry, lease, writes=False)
        return version

    def delete(self, name: str, mode: str | None, lease: str | None, if_match: str | None) -> None:
        entry = self.entries[name]
        if entry.now is None and entry.staged:
            self._guard_write(entry, lease, if_match, False)
            entry.staged = {}
            return
        self._existing(name)
        self._guard_write(entry, lease, if_match, False)
        if entry.snapshots and mode is None:
            raise Refused("409 SnapshotsPresent")
        entry.snapshots = {}
        if mode != "only":
            self.entries[name] = Entry()

    def delete_snapshot(self, name: str, snapshot: str) -> None:
        entry, _ = self._existing(name, snapshot)
        del entry.snapshots[snapshot]

    def acquire(self, name: str, proposed: str, seconds: int) -> None:
        entry, _ = self._existing(name)
        state = self.state(entry)
        holder = entry.lease is not None and entry.lease.id == proposed
        if state == "breaking" and holder:
            raise Refused("409 LeaseIsBreakingAndCannotBeAcquired")
        if state == "breaking" or (state == "leased" and not holder):
            raise Refused("409 LeaseAlreadyPresent")
        entry.lease = Lease(proposed, seconds, self._end(seconds))

    def renew(self, name: str, id: str) -> None:
        entry, _ = self._existing(name)
        if entry.lease is None or entry.lease.id != id:
            raise Refused("409 LeaseIdMismatchWithLeaseOperation")
        if entry.lease.breaks is not None:
            raise Refused("409 LeaseIsBrokenAndCannotBeRenewed")
        entry.lease = Lease(id, entry.lease.seconds, self._end(entry.lease.seconds))

    def change(self, name: str, id: str, proposed: str) -> None:
        entry, _ = self._existing(name)
        state = self.state(entry)
        if entry.lease is None or state in ("broken", "expired"):
            raise Refused("409 LeaseNotPresentWithLeaseOperation")
        if state == "breaking":
            code = "LeaseIsBreakingAndCannotBeChanged" if entry.lease.id == id else "LeaseIdMismatchWithLeaseOperation"
            raise Refused(f"409 {code}")
        if entry.lease.id not in (id, proposed):
            raise Refused("409 LeaseIdMismatchWithLeaseOperation")
        entry.lease = replace(entry.lease, id=proposed)

    def release(self, name: str, id: str) -> None:
        entry, _ = self._existing(name)
        if entry.lease is None or entry.lease.id != id:
            raise Refused("409 LeaseIdMismatchWithLeaseOperation")
        entry.lease = None

    def break_(self, name: str, period: int | None) -> None:
        entry, _ = self._existing(name)
        if entry.lease is None:
            raise Refused("409 LeaseNotPresentWithLeaseOperation")
        lease = entry.lease
        ends = lease.expires if lease.breaks is None else lease.breaks
        asked = math.inf if period is None else self.time + period
        moment = min(ends, asked)
        entry.lease = replace(lease, breaks=self.time if moment == math.inf else moment)

    # Looking.

    def stamp(self, name: str, etag: str) -> None:
        entry = self.entries[name]
        if entry.now is not None:
            entry.now = replace(entry.now, etag=etag)

    def state(self, entry: Entry) -> str:
        if entry.lease is None:
            return "available"
        if entry.lease.breaks is not None:
            return "breaking" if self.time < entry.lease.breaks else "broken"
        return "leased" if self.time < entry.lease.expires else "expired"

    # Rules.

    def _existing(self, name: str, snapshot: str | None = None) -> tuple[Entry, Version]:
        entry = self.entries[name]
        version = entry.now if snapshot is None else entry.snapshots.get(snapshot)
        if version is None:
            raise Refused("404 BlobNotFound")
        return entry, version

    def _guard_write(self, entry: Entry, lease: str | None, if_match: str | None, if_none: bool) -> None:
        self._check_lease(entry, lease, writes=True)
        if if_none and entry.now is not None and lease is None:  # the lease holder may overwrite
            raise Refused("409 BlobAlreadyExists")
        if if_match is not None and (entry.now is None or entry.now.etag != if_match):
            raise Refused("412 ConditionNotMet")

    def _check_lease(self, entry: Entry, sent: str | None, *, writes: bool) -> None:
        held = entry.lease.id if entry.lease is not None else None
        if self.state(entry) in ("leased", "breaking"):
            if sent is None and writes:
                raise Refused("412 LeaseIdMissing")
            if sent not in (None, held):
                raise Refused("412 LeaseIdMismatchWithBlobOperation")
        elif sent is not None:
            raise Refused("412 LeaseLost" if sent == held else "412 LeaseNotPresentWithBlobOperation")

    def _replace(self, entry: Entry, data: bytes, meta: str) -> None:
        entry.now = Version(data, meta, "")
        entry.staged = {}
        self._forget_ended_lease(entry)

    def _forget_ended_lease(self, entry: Entry) -> None:
        if self.state(entry) in ("broken", "expired"):
            entry.lease = None

    def _end(self, seconds: float) -> float:
        return math.inf if seconds == -1 else self.time + seconds
