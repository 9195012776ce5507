"""Random writes, snapshots and deletes, while versioning and soft delete are turned on and off, agree with a small model.

The model is the table in docs/settings.md: neither, soft delete, versioning, both. After every step the listing has to show
exactly the states the model knows, in order, and a state picked at random has to read as it was. The clock moves by fractions
of a day.
"""

import http.client
import json
import os
import random
import re
import time
from dataclasses import dataclass, field, replace
from urllib.parse import quote

from tests.rest.running import ADMIN
from tests.simulation.client import Answer, Client, connected
from tests.simulation.servers import Fleet
from verditer.services.account import DEVELOPMENT_ACCOUNT

NAMES = ["a", "dir/b"]
DAYS = 2
SECONDS = min(8.0, float(os.environ.get("VERDITER_MODEL_SECONDS", "4")))
INCLUDE = "snapshots,versions,deleted,metadata"


@dataclass(frozen=True)
class State:
    data: bytes
    meta: str
    born: int  # the model's time of the write that created it
    version: int | None = None  # the time since which it is the current version
    expires: float = 0.0  # the time of its soft delete


@dataclass
class Entry:
    """All states of a name. Keys are times of the model, in the order of the server's ids."""

    now: State | None = None
    snapshots: dict[int, State] = field(default_factory=dict)
    versions: dict[int, State] = field(default_factory=dict)
    deleted_snapshots: dict[int, State] = field(default_factory=dict)
    deleted_versions: dict[int, State] = field(default_factory=dict)
    deleted: tuple[int, State] | None = None


class Model:
    def __init__(self) -> None:
        self.entries = {name: Entry() for name in NAMES}
        self.versioning = self.soft_delete = False
        self.day = 0.0
        self._time = 0

    def put(self, name: str, data: bytes, meta: str) -> None:
        entry, tick = self.entries[name], self._tick()
        if entry.now is not None:
            self._retire(entry, entry.now, tick)
        entry.now = State(data, meta, tick, tick if self.versioning else None)

    def set_metadata(self, name: str, meta: str) -> bool:
        entry = self.entries[name]
        if entry.now is None:
            return False
        tick = self._tick()
        version = entry.now.version
        if self._is_versioned(entry.now):
            self._keep_version(entry, entry.now)
            version = tick if self.versioning else None
        entry.now = replace(entry.now, meta=meta, born=tick, version=version)
        return True

    def snapshot(self, name: str) -> bool:
        entry = self.entries[name]
        if entry.now is None:
            return False
        entry.snapshots[self._tick()] = entry.now
        if self.versioning:
            self._keep_version(entry, entry.now)
            entry.now = replace(entry.now, version=self._tick())
        return True

    def delete(self, name: str) -> bool:
        """With its snapshots."""
        entry = self.entries[name]
        if entry.now is None:
            return False
        for tick in list(entry.snapshots):
            self.delete_snapshot(name, tick)
        tick = self._tick()
        if self._is_versioned(entry.now):
            self._keep_version(entry, entry.now)
        elif self.soft_delete:
            if entry.deleted is not None:
                entry.deleted_snapshots[entry.deleted[0]] = entry.deleted[1]
            entry.deleted = tick, self._expiring(entry.now)
        entry.now = None
        return True

    def delete_snapshot(self, name: str, tick: int) -> None:
        entry = self.entries[name]
        state = entry.snapshots.pop(tick)
        if self.soft_delete:
            entry.deleted_snapshots[tick] = self._expiring(state)

    def delete_version(self, name: str, tick: int) -> None:
        entry = self.entries[name]
        state = entry.versions.pop(tick)
        if self.soft_delete:
            entry.deleted_versions[tick] = self._expiring(state)

    def undelete(self, name: str) -> bool:
        entry = self.entries[name]
        known = [entry.now, entry.snapshots, entry.versions, entry.deleted_snapshots, entry.deleted_versions, entry.deleted]
        if not any(known):
            return False
        entry.versions |= entry.deleted_versions
        entry.snapshots |= entry.deleted_snapshots
        if entry.deleted is not None:
            tick, state = entry.deleted
            if entry.now is None:
                entry.now = state
            else:
                entry.snapshots[tick] = state
        entry.deleted, entry.deleted_snapshots, entry.deleted_versions = None, {}, {}
        return True

    def pass_days(self, days: float) -> None:
        self.day += days
        for entry in self.entries.values():
            entry.deleted_snapshots = {tick: one for tick, one in entry.deleted_snapshots.items() if one.expires > self.day}
            entry.deleted_versions = {tick: one for tick, one in entry.deleted_versions.items() if one.expires > self.day}
            if entry.deleted is not None and entry.deleted[1].expires <= self.day:
                entry.deleted = None

    def listing(self) -> list[tuple[str, str, int, State]]:
        """(name, kind, time, state) in the order of a listing."""
        shown = []
        for name, entry in self.entries.items():
            kept = [("snapshot", tick, one) for tick, one in entry.snapshots.items()]
            kept += [("deleted snapshot", tick, one) for tick, one in entry.deleted_snapshots.items()]
            if entry.deleted is not None and entry.now is not None:
                kept.append(("deleted snapshot", *entry.deleted))
            shown += [(name, *one) for one in sorted(kept, key=lambda one: one[1])]
            old = [("version", tick, one) for tick, one in entry.versions.items()]
            old += [("deleted version", tick, one) for tick, one in entry.deleted_versions.items()]
            shown += [(name, *one) for one in sorted(old, key=lambda one: one[1])]
            if entry.now is not None:
                shown.append((name, "blob", entry.now.born, entry.now))
            elif entry.deleted is not None:
                shown.append((name, "deleted blob", *entry.deleted))
        return shown

    def _retire(self, entry: Entry, state: State, tick: int) -> None:
        if self._is_versioned(state):
            self._keep_version(entry, state)
        elif self.soft_delete:
            entry.deleted_snapshots[tick] = self._expiring(state)

    def _keep_version(self, entry: Entry, state: State) -> None:
        tick = state.version if state.version is not None else state.born
        entry.versions[tick] = replace(state, version=tick)

    def _is_versioned(self, state: State) -> bool:
        return self.versioning or state.version is not None

    def _expiring(self, state: State) -> State:
        return replace(state, expires=self.day + DAYS)

    def _tick(self) -> int:
        self._time += 1
        return self._time


class Walk:
    """A random sequence of operations on the server and on the model."""

    def __init__(self, clients: list[Client], fleet: Fleet, container: str, chance: random.Random) -> None:
        self.model = Model()
        self.trace: list[str] = []
        self.shown: list[tuple[str, str, str]] = []  # name, kind and id of the entries of the last listing
        self._clients, self._fleet, self._container, self._chance = clients, fleet, container, chance
        self._count = 0

    async def step(self) -> None:
        steps = [self._put, self._put, self._put, self._meta, self._snapshot, self._delete, self._delete_old, self._delete_old]
        steps += [self._undelete, self._settle, self._wait]
        step = self._chance.choice(steps)
        name = self._chance.choice(NAMES)
        self.trace.append(f"{step.__name__} {name}")
        await step(name)
        await self._compare()

    def settle(self, *, versioning: bool, soft_delete: bool) -> None:
        self.model.versioning, self.model.soft_delete = versioning, soft_delete
        self.trace.append(f"versioning={versioning} soft_delete={soft_delete}")
        server = self._chance.choice(self._fleet.servers)
        connection = http.client.HTTPConnection("127.0.0.1", server.admin_port)
        settings = {"versioning": versioning, "blob_soft_delete_days": DAYS if soft_delete else 0}
        connection.request("PUT", f"/control/accounts/{DEVELOPMENT_ACCOUNT}/settings", json.dumps(settings), ADMIN)
        assert connection.getresponse().status == 200
        connection.close()

    async def _call(self, method: str, name: str, query: str = "", body: bytes = b"", **headers: str) -> Answer:
        sent = {key.replace("_", "-"): value for key, value in headers.items()}
        path = f"{self._container}/{name}" if name else self._container
        answer = await self._chance.choice(self._clients).call(method, path, query=query, headers=sent, body=body)
        self.trace.append(f"  {method} {name} {query}: {answer.outcome}")
        return answer

    def _expect(self, answer: Answer, success: bool) -> None:
        assert (answer.status < 300) is success, "\n".join(self.trace[-60:])
        assert success or answer.outcome == "404 BlobNotFound", "\n".join(self.trace[-60:])

    def _next(self) -> str:
        self._count += 1
        return str(self._count)

    async def _put(self, name: str) -> None:
        meta = self._next()
        data = meta.encode().ljust(self._chance.choice([5, 70_000]), b".")
        self._expect(await self._call("PUT", name, body=data, x_ms_blob_type="BlockBlob", x_ms_meta_m=meta), True)
        self.model.put(name, data, meta)

    async def _meta(self, name: str) -> None:
        meta = self._next()
        self._expect(await self._call("PUT", name, "comp=metadata", x_ms_meta_m=meta), self.model.set_metadata(name, meta))

    async def _snapshot(self, name: str) -> None:
        self._expect(await self._call("PUT", name, "comp=snapshot"), self.model.snapshot(name))

    async def _delete(self, name: str) -> None:
        self._expect(await self._call("DELETE", name, x_ms_delete_snapshots="include"), self.model.delete(name))

    async def _delete_old(self, name: str) -> None:
        old = [
            (number, kind, id)
            for number, (_, kind, id) in enumerate(self.shown)
            if kind in ("snapshot", "version") and self._chance.random() < 0.5
        ]
        if not old:
            return
        number, kind, id = self._chance.choice(old)
        name, _, tick, _ = self.model.listing()[number]
        query = f"{'snapshot' if kind == 'snapshot' else 'versionid'}={quote(id)}"
        self._expect(await self._call("DELETE", name, query), True)
        (self.model.delete_snapshot if kind == "snapshot" else self.model.delete_version)(name, tick)

    async def _undelete(self, name: str) -> None:
        self._expect(await self._call("PUT", name, "comp=undelete"), self.model.undelete(name))

    async def _settle(self, name: str) -> None:
        self.settle(versioning=self._chance.random() < 0.5, soft_delete=self._chance.random() < 0.6)

    async def _wait(self, name: str) -> None:
        self._fleet.servers[0].move_clock(0.7 * 86400)
        for client in self._clients:  # until it has seen the moved clock, a process refuses large uploads
            await client.create_container(f"{self._container}-{self._next()}")
        self.model.pass_days(0.7)

    async def _compare(self) -> None:
        limit = self._chance.choice(["", "&maxresults=2"])
        self.shown, found = [], []
        marker = ""
        while True:
            more = f"&marker={quote(marker)}" if marker else ""
            page = await self._call("GET", "", f"restype=container&comp=list&include={quote(INCLUDE)}{limit}{more}")
            text = page.body.decode()
            for item in re.findall(r"<Blob>(.*?)</Blob>", text, re.DOTALL):
                name, kind, id, meta = described(item)
                self.shown.append((name, kind, id))
                found.append((name, kind, meta))
            marker = "".join(re.findall(r"<NextMarker>(.*?)</NextMarker>", text))
            if not marker:
                break
        expected = self.model.listing()
        wanted = [(name, kind, state.meta) for name, kind, _, state in expected]
        assert found == wanted, "\n".join([*self.trace[-60:], f"found    {found}", f"expected {wanted}"])
        if expected:
            await self._read(self._chance.randrange(len(expected)))

    async def _read(self, number: int) -> None:
        name, kind, id = self.shown[number]
        query = {"snapshot": f"snapshot={quote(id)}", "version": f"versionid={quote(id)}"}.get(kind.removeprefix("deleted "), "")
        answer = await self._call("GET", name, query)
        _, _, _, state = self.model.listing()[number]
        if kind.startswith("deleted"):
            assert answer.outcome == "404 BlobNotFound", "\n".join(self.trace[-60:])
        else:
            assert (answer.body, answer.headers["x-ms-meta-m"]) == (state.data, state.meta), "\n".join(self.trace[-60:])


def described(item: str) -> tuple[str, str, str, str]:
    """Name, kind, id and metadata of an item of a listing."""

    def text(element: str) -> str:
        return "".join(re.findall(rf"<{element}>(.*?)</{element}>", item))

    deleted = "deleted " if text("Deleted") else ""
    if text("Snapshot"):
        return text("Name"), f"{deleted}snapshot", text("Snapshot"), text("m")
    if text("VersionId") and not text("IsCurrentVersion"):
        return text("Name"), f"{deleted}version", text("VersionId"), text("m")
    return text("Name"), f"{deleted}blob", "", text("m")


async def test_random_history_agrees_with_the_model(own_fleet: Fleet, container: str, chance: random.Random) -> None:
    # contract G2, G4, G7
    started = time.monotonic()
    async with connected(own_fleet.ports, len(own_fleet.ports)) as clients:
        await clients[0].create_container(container)
        walk = Walk(list(clients), own_fleet, container, chance)
        while time.monotonic() - started < SECONDS:
            await walk.step()
    assert "ERROR" not in own_fleet.log, own_fleet.log
    assert len(walk.trace) > 100
