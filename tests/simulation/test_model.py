"""Sequential random operations agree with a small model (`model.py`)."""

import os
import random
import re
import time
from collections.abc import Awaitable, Callable
from urllib.parse import quote

from tests.simulation.client import Answer, Client, Headers, block_id, connected, numbered_bytes
from tests.simulation.model import Model, Refused, Version
from tests.simulation.servers import Fleet

NAMES = ["a", "dir/b", "dir/c"]
LEASES = ["11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222"]
BLOCKS = [block_id(f"block-{number}") for number in range(4)]
SIZES = [0, 5, 2_000, 66_000]
SUCCESS = {"200", "201", "202"}
# The clock moves by multiples of ten seconds, and leases end five seconds off them, so the model needs no exact clock.
MOVES, DURATIONS, PERIODS = [10, 30, 50], [15, 35, 55, -1], [None, 0, 15, 45]
SECONDS = min(4.0, float(os.environ.get("VERDITER_MODEL_SECONDS", "2.5")))


class Walk:
    """A random sequence of operations on the server and on the model."""

    def __init__(self, client: Client, fleet: Fleet, container: str, chance: random.Random) -> None:
        self.client = client
        self.model = Model(NAMES)
        self.trace: list[str] = []
        self._fleet = fleet
        self._container = container
        self._chance = chance
        self._count = 0
        self._stale = '"0x1"'

    async def step(self) -> None:
        steps = [self._put, self._put, self._stage, self._stage, self._commit, self._meta, self._get, self._get, self._snapshot]
        steps += [self._delete, self._delete_snapshot, self._lease, self._lease, self._lease, self._listing, self._move]
        await self._chance.choice(steps)(self._chance.choice(NAMES))

    def _path(self, name: str) -> str:
        return f"{self._container}/{name}"

    async def _agree(
        self, what: str, name: str, expected: Callable[[], object], call: Awaitable[Answer], *, stamp: bool = False
    ) -> Answer:
        answer = await call
        wanted = "success"
        try:
            expected()
        except Refused as refusal:
            wanted = str(refusal)
        found = "success" if answer.outcome in SUCCESS else answer.outcome
        self.trace.append(f"{self.model.time:.0f}s {what} {name}: {answer.outcome}")
        assert found == wanted, "\n".join([*self.trace[-40:], f"expected {wanted}"])
        if stamp and wanted == "success":
            self._stale = answer.etag if self._chance.random() < 0.3 else self._stale  # soon stale
            self.model.stamp(name, answer.etag)
        return answer

    def _some_lease(self, name: str) -> str | None:
        held = self.model.entries[name].lease
        return self._chance.choice([None, None, LEASES[0], held.id if held else None, held.id if held else None])

    def _some_condition(self, name: str) -> tuple[str | None, bool]:
        now = self.model.entries[name].now
        etag = self._chance.choice([None, None, None, now.etag if now else self._stale, self._stale])
        return etag, etag is None and self._chance.random() < 0.15

    def _data(self) -> bytes:
        self._count += 1
        return numbered_bytes(self._count, self._chance.choice(SIZES))

    async def _put(self, name: str) -> None:
        data, lease, (if_match, if_none) = self._data(), self._some_lease(name), self._some_condition(name)
        call = self.client.put_blob(self._path(name), data, headers(lease, if_match, if_none))
        await self._agree("put", name, lambda: self.model.put(name, data, lease, if_match, if_none), call, stamp=True)

    async def _stage(self, name: str) -> None:
        data, lease, block = self._data() or b"x", self._some_lease(name), self._chance.choice(BLOCKS)
        call = self.client.put_block(self._path(name), block, data, headers(lease))
        await self._agree("stage", name, lambda: self.model.stage(name, block, data, lease), call)

    async def _commit(self, name: str) -> None:
        entry = self.model.entries[name]
        known = list(entry.staged | entry.committed)
        blocks = self._chance.choices(known or BLOCKS, k=self._chance.randrange(4))
        if self._chance.random() < 0.1:
            blocks.append(BLOCKS[0])
        lease, (if_match, if_none) = self._some_lease(name), self._some_condition(name)
        call = self.client.put_block_list(self._path(name), blocks, headers(lease, if_match, if_none))
        await self._agree("commit", name, lambda: self.model.commit(name, blocks, lease, if_match, if_none), call, stamp=True)

    async def _meta(self, name: str) -> None:
        self._count += 1
        meta, lease, (if_match, _) = str(self._count), self._some_lease(name), self._some_condition(name)
        call = self.client.set_metadata(self._path(name), {"x-ms-meta-m": meta, **headers(lease, if_match)})
        await self._agree("metadata", name, lambda: self.model.set_metadata(name, meta, lease, if_match), call, stamp=True)

    async def _get(self, name: str) -> None:
        entry = self.model.entries[name]
        snapshot = self._chance.choice([None, *entry.snapshots, "2020-01-01T00:00:00.0000000Z"])
        lease = self._some_lease(name)
        version = entry.now if snapshot is None else entry.snapshots.get(snapshot)
        if_none = version.etag if version is not None and self._chance.random() < 0.2 else None
        sent = headers(lease) | ({"If-None-Match": if_none} if if_none else {})
        seen: list[Version] = []
        call = self.client.get_blob(self._path(name), sent, query=f"snapshot={quote(snapshot)}" if snapshot else "")
        answer = await self._agree("get", name, lambda: seen.append(self.model.get(name, snapshot, lease, if_none)), call)
        for found in seen:
            assert (answer.body, answer.headers.get("x-ms-meta-m", ""), answer.etag) == (found.data, found.meta, found.etag)
            if snapshot is None:
                assert answer.headers["x-ms-lease-state"] == self.model.state(entry)

    async def _snapshot(self, name: str) -> None:
        lease = self._some_lease(name)
        seen: list[Version] = []
        call = self.client.snapshot(self._path(name), headers(lease))
        answer = await self._agree("snapshot", name, lambda: seen.append(self.model.snapshot(name, lease)), call)
        for found in seen:
            assert answer.etag == found.etag
            self.model.entries[name].snapshots[answer.headers["x-ms-snapshot"]] = found

    async def _delete(self, name: str) -> None:
        mode, lease, (if_match, _) = (
            self._chance.choice([None, "include", "only"]),
            self._some_lease(name),
            self._some_condition(name),
        )
        if self.model.entries[name].now is None:
            mode = None
        sent = headers(lease, if_match) | ({"x-ms-delete-snapshots": mode} if mode else {})
        call = self.client.delete_blob(self._path(name), sent)
        await self._agree(f"delete {mode}", name, lambda: self.model.delete(name, mode, lease, if_match), call)

    async def _delete_snapshot(self, name: str) -> None:
        snapshot = self._chance.choice([*self.model.entries[name].snapshots, "2020-01-01T00:00:00.0000000Z"])
        call = self.client.delete_blob(self._path(name), query=f"snapshot={quote(snapshot)}")
        await self._agree("delete snapshot", name, lambda: self.model.delete_snapshot(name, snapshot), call)

    async def _lease(self, name: str) -> None:
        path, model = self._path(name), self.model
        id, proposed = self._chance.choice(LEASES), self._chance.choice(LEASES)
        match self._chance.choice(["acquire", "acquire", "renew", "change", "release", "break"]):
            case "acquire":
                seconds = self._chance.choice(DURATIONS)
                call = self.client.acquire(path, proposed, seconds)
                await self._agree(f"acquire {proposed[0]} {seconds}", name, lambda: model.acquire(name, proposed, seconds), call)
            case "renew":
                call = self.client.lease(path, "renew", headers(id))
                await self._agree(f"renew {id[0]}", name, lambda: model.renew(name, id), call)
            case "change":
                call = self.client.lease(path, "change", {**headers(id), "x-ms-proposed-lease-id": proposed})
                await self._agree(f"change {id[0]} {proposed[0]}", name, lambda: model.change(name, id, proposed), call)
            case "release":
                call = self.client.lease(path, "release", headers(id))
                await self._agree(f"release {id[0]}", name, lambda: model.release(name, id), call)
            case _:
                period = self._chance.choice(PERIODS)
                call = self.client.lease(path, "break", {} if period is None else {"x-ms-lease-break-period": str(period)})
                await self._agree(f"break {period}", name, lambda: model.break_(name, period), call)

    async def _listing(self, name: str) -> None:
        page = (await self.client.list_blobs(self._container, include="snapshots,metadata,uncommittedblobs")).body.decode()
        found = []
        for item in re.findall(r"<Blob>(.*?)</Blob>", page, re.DOTALL):
            fields = [re.findall(rf"<{tag}>(.*?)</{tag}>", item) for tag in ("Name", "Snapshot", "Content-Length", "m")]
            name, snapshot, length, meta = ("".join(values) for values in fields)
            found.append((name, snapshot, int(length), meta))
        expected = []
        for name, entry in self.model.entries.items():
            for snapshot, version in entry.snapshots.items():
                expected.append((name, snapshot, len(version.data), version.meta))
            if entry.now is not None:
                expected.append((name, "", len(entry.now.data), entry.now.meta))
            elif entry.staged:
                expected.append((name, "", 0, ""))
        assert found == expected, "\n".join(self.trace[-40:])

    async def _move(self, name: str) -> None:
        seconds = self._chance.choice(MOVES)
        self._fleet.servers[0].move_clock(seconds)
        self.model.time += seconds
        self.trace.append(f"{seconds} seconds pass")


def headers(lease: str | None = None, if_match: str | None = None, if_none: bool = False) -> Headers:
    sent = {"x-ms-lease-id": lease} if lease is not None else {}
    if if_match is not None:
        sent["If-Match"] = if_match
    if if_none:
        sent["If-None-Match"] = "*"
    return sent


async def test_random_operations_agree_with_the_model(own_fleet: Fleet, container: str, chance: random.Random) -> None:
    # contract G7, B1, B2, L1, L2, L3, L4; races L1, L2, L3, L4, L5, B2
    started = time.monotonic()
    async with connected(own_fleet.ports, 1) as [client]:
        await client.create_container(container)
        walk = Walk(client, own_fleet, container, chance)
        while time.monotonic() - started < SECONDS:  # five seconds off the model's clock it would be wrong
            await walk.step()
    assert len(walk.trace) > 100
