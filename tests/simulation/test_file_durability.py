"""A share agrees with a model of plain dictionaries although its servers are killed: trees, renames, ranges, snapshots.

One client sends random operations. When the servers are killed, the operation that was not answered has happened wholly or not at
all (contract G6): the share equals the model before it or after it.
"""

import copy
import os
import random
import threading
import uuid
from collections.abc import Callable

from azure.core.exceptions import AzureError, HttpResponseError
from azure.storage.fileshare import ShareClient, ShareDirectoryClient

from tests.simulation.servers import Fleet
from verditer.services.account import DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY

ROUNDS = int(os.environ.get("VERDITER_KILLS", "4"))
NAMES = ("a", "b", "c")
SIZES = (0, 100, 70_000)  # bytes: nothing, inline, an extent

Tree = dict[str, "Tree | bytes"]
Snapshots = dict[str, Tree]


class Model:
    """What the share holds: the tree, and the trees of its snapshots."""

    def __init__(self) -> None:
        self.tree: Tree = {}
        self.snapshots: Snapshots = {}

    def directories(self) -> list[str]:
        """The paths of all directories, the root first."""
        return ["", *(path for path, entry in walk(self.tree) if isinstance(entry, dict))]

    def files(self) -> list[str]:
        return [path for path, entry in walk(self.tree) if isinstance(entry, bytes)]

    def home(self, path: str) -> tuple[Tree, str]:
        """The directory that holds the entry, and the name of the entry."""
        *above, name = path.split("/")
        found: Tree = self.tree
        for part in above:
            below = found[part]
            assert isinstance(below, dict)
            found = below
        return found, name


def walk(tree: Tree, above: str = "") -> list[tuple[str, "Tree | bytes"]]:
    found: list[tuple[str, Tree | bytes]] = []
    for name, entry in tree.items():
        found.append((above + name, entry))
        if isinstance(entry, dict):
            found += walk(entry, f"{above}{name}/")
    return found


class Writer:
    """Sends one operation after the other until the server is killed. `after` is the model if the last operation happened."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.before = Model()
        self.after = Model()
        self.acknowledged = 0
        self.mistakes: list[str] = []

    def run(self, share: ShareClient) -> None:
        try:
            while not self.mistakes:
                self.step(share)
        except HttpResponseError as error:
            if error.status_code is not None and error.status_code < 500:
                self.mistakes.append(f"refused: {error}")
        except AzureError:
            return

    def step(self, share: ShareClient) -> None:
        self.after = copy.deepcopy(self.before)
        operations = (self.make_directory, self.put, self.put, self.write, self.rename, self.delete, self.snapshot)
        call = self.chance.choice(operations)(self.after, share)
        if call is not None:
            call()
            self.before = self.after
            self.acknowledged += 1

    def new_path(self, model: Model) -> str | None:
        parent = self.chance.choice(model.directories())
        name = self.chance.choice(NAMES)
        path = f"{parent}/{name}" if parent else name
        home, _ = model.home(path)
        return None if name in home or path.count("/") > 3 else path

    def make_directory(self, model: Model, share: ShareClient) -> Callable[[], object] | None:
        path = self.new_path(model)
        if path is None:
            return None
        home, name = model.home(path)
        home[name] = {}
        return share.get_directory_client(path).create_directory

    def put(self, model: Model, share: ShareClient) -> Callable[[], object] | None:
        path, size = self.new_path(model), self.chance.choice(SIZES)
        if path is None:
            return None
        home, name = model.home(path)
        home[name] = bytes(size)
        return lambda: share.get_file_client(path).create_file(size)

    def write(self, model: Model, share: ShareClient) -> Callable[[], object] | None:
        files = [path for path in model.files() if model.home(path)[0][model.home(path)[1]]]
        if not files:
            return None
        path = self.chance.choice(files)
        home, name = model.home(path)
        content = home[name]
        assert isinstance(content, bytes)
        start = self.chance.randrange(len(content))
        data = self.chance.randbytes(self.chance.randint(1, len(content) - start))
        home[name] = content[:start] + data + content[start + len(data) :]
        return lambda: share.get_file_client(path).upload_range(data, offset=start, length=len(data))

    def rename(self, model: Model, share: ShareClient) -> Callable[[], object] | None:
        paths = [path for path, _ in walk(model.tree)]
        target = self.new_path(model)
        if not paths or target is None:
            return None
        source = self.chance.choice(paths)
        if f"{target}/".startswith(f"{source}/"):
            return None
        home, name = model.home(source)
        moved = home.pop(name)
        new_home, new_name = model.home(target)
        new_home[new_name] = moved
        if isinstance(moved, dict):
            return lambda: share.get_directory_client(source).rename_directory(target)
        return lambda: share.get_file_client(source).rename_file(target)

    def delete(self, model: Model, share: ShareClient) -> Callable[[], object] | None:
        paths = [path for path, _ in walk(model.tree)]
        if not paths:
            return None
        path = self.chance.choice(paths)
        home, name = model.home(path)
        entry = home[name]
        if isinstance(entry, dict) and entry:
            return None
        del home[name]
        if isinstance(entry, dict):
            return share.get_directory_client(path).delete_directory
        return share.get_file_client(path).delete_file

    def snapshot(self, model: Model, share: ShareClient) -> Callable[[], object] | None:
        """A snapshot that was not answered has no name here, so it is not looked at."""
        if len(model.snapshots) >= 3:
            return None

        def take() -> None:
            model.snapshots[str(share.create_snapshot()["snapshot"])] = copy.deepcopy(model.tree)

        return take

    def check(self, fleet: Fleet, number: int, share_name: str) -> None:
        assert self.mistakes == []
        found = contents(client(fleet, number, share_name).get_directory_client())
        assert found in (self.before.tree, self.after.tree)
        for snapshot, tree in self.before.snapshots.items():
            assert contents(client(fleet, number, share_name, snapshot).get_directory_client()) == tree
        self.before.tree = found


def client(fleet: Fleet, number: int, share: str, snapshot: str | None = None) -> ShareClient:
    server = fleet.servers[number % len(fleet.servers)]
    endpoint = f"http://127.0.0.1:{server.ports['file']}/{DEVELOPMENT_ACCOUNT}"
    return ShareClient(endpoint, share, snapshot=snapshot, credential=DEVELOPMENT_KEY, retry_total=0)


def contents(directory: ShareDirectoryClient) -> Tree:
    found: Tree = {}
    for item in directory.list_directories_and_files():
        if item.is_directory:
            found[item.name] = contents(directory.get_subdirectory_client(item.name))
        else:
            found[item.name] = directory.get_file_client(item.name).download_file().readall()
    return found


def test_a_share_agrees_with_its_model_after_kills(own_fleet: Fleet, chance: random.Random) -> None:
    # contract G6, F1
    name = f"sim{uuid.uuid4().hex[:16]}"
    client(own_fleet, 0, name).create_share()
    writer = Writer(chance)
    for number in range(ROUNDS):
        thread = threading.Thread(target=writer.run, args=(client(own_fleet, number, name),))
        goal = writer.acknowledged + chance.randint(15, 60)
        thread.start()
        while writer.acknowledged < goal and thread.is_alive():
            thread.join(0.001)
        own_fleet.restart()
        thread.join()
        writer.check(own_fleet, number + 1, name)
