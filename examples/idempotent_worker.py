"""A queue worker that works correctly when messages arrive twice, jobs take long, and some messages can never be processed.

A queue delivers at least once: a message that was received and not deleted in time is delivered to the next worker, even if the
first one is only slow. So a worker (1) has an idempotent effect: repeating it changes nothing; (2) renews the visibility timeout
of its message while it works; (3) moves a message that has failed too often to a poison queue for a person to look at.

Start a server, then run:  python examples/idempotent_worker.py
AZURE_STORAGE_CONNECTION_STRING selects the account; the default is the local development account.
"""

import json
import os
import threading
import time
import uuid
from types import TracebackType

from azure.core.exceptions import HttpResponseError
from azure.storage.queue import QueueClient, QueueMessage, QueueServiceClient

DEVELOPMENT = (
    "DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;"
    "AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==;"
    "QueueEndpoint=http://127.0.0.1:10001/devstoreaccount1;"
)
VISIBILITY_SECONDS = 2  # in production, minutes
MAX_ATTEMPTS = 3

shipped: dict[str, str] = {}  # in production, a database with a unique key: one row per order, however often it is written


def main() -> None:
    service = QueueServiceClient.from_connection_string(os.environ.get("AZURE_STORAGE_CONNECTION_STRING", DEVELOPMENT))
    name = f"orders-{uuid.uuid4().hex[:12]}"
    with service, service.create_queue(name) as orders, service.create_queue(f"{name}-poison") as poison:
        try:
            run(orders, poison)
        finally:
            orders.delete_queue()
            poison.delete_queue()


def run(orders: QueueClient, poison: QueueClient) -> None:
    orders.send_message(json.dumps({"order": "A-1", "to": "Ada"}))
    lost = orders.receive_message(visibility_timeout=1)
    assert lost is not None
    ship(json.loads(lost.content))
    print("A worker ships order A-1 and dies before it can delete the message.")

    orders.send_message(json.dumps({"order": "B-2", "to": "Bob", "takes": VISIBILITY_SECONDS * 2}))
    orders.send_message("this is no order")
    work_until_empty(orders, poison)

    for message in poison.receive_messages():
        print(f"A person finds in the poison queue: {message.content!r}.")
    print(f"Shipped, each once: {sorted(shipped)}.")


def work_until_empty(orders: QueueClient, poison: QueueClient) -> None:
    while orders.get_queue_properties().approximate_message_count:
        message = orders.receive_message(visibility_timeout=VISIBILITY_SECONDS)
        if message is None:
            time.sleep(0.1)  # another worker, possibly a dead one, holds the remaining messages
        elif (message.dequeue_count or 0) > MAX_ATTEMPTS:
            set_aside(message, orders, poison)
        else:
            handle(message, orders)


def handle(message: QueueMessage, orders: QueueClient) -> None:
    with Renewal(message, orders) as renewal:
        try:
            ship(json.loads(message.content))
        except Exception as error:
            print(f"Attempt {message.dequeue_count} fails ({type(error).__name__}): the message will come again.")
            renewal.release()
            return
        renewal.delete()


def ship(order: dict[str, str | int]) -> None:
    """Idempotent: the order number shows whether the order was shipped before."""
    number = str(order["order"])
    if number in shipped:
        print(f"Order {number} was shipped already: nothing to do but delete the message.")
        return
    time.sleep(float(order.get("takes", 0)))
    shipped[number] = str(order["to"])
    print(f"Order {number} is shipped to {order['to']}.")


def set_aside(message: QueueMessage, orders: QueueClient, poison: QueueClient) -> None:
    """Put first, then delete: a crash in between duplicates the message, but never loses it."""
    poison.send_message(message.content, time_to_live=-1)
    orders.delete_message(message)
    print(f"Given up after {MAX_ATTEMPTS} attempts, and set aside.")


class Renewal:
    """Keeps a message hidden while the block runs. Every renewal returns a new receipt; only the newest one is valid."""

    def __init__(self, message: QueueMessage, queue: QueueClient) -> None:
        self._queue = queue
        self._id, self._receipt = message.id, message.pop_receipt
        self._lock = threading.Lock()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._renew)

    def __enter__(self) -> "Renewal":
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._done.set()
        self._thread.join()

    def delete(self) -> None:
        with self._lock:
            self._done.set()
            self._queue.delete_message(self._id, self._receipt)

    def release(self) -> None:
        """Make the message visible at once; in production, after a pause that grows with each attempt."""
        with self._lock:
            self._done.set()
            self._queue.update_message(self._id, self._receipt, visibility_timeout=0)

    def _renew(self) -> None:
        while not self._done.wait(VISIBILITY_SECONDS / 3):
            with self._lock:
                if self._done.is_set():
                    return
                try:
                    renewed = self._queue.update_message(self._id, self._receipt, visibility_timeout=VISIBILITY_SECONDS)
                except HttpResponseError:
                    return  # another worker has the message now; the effect is idempotent, so this one may finish
                self._receipt = renewed.pop_receipt


if __name__ == "__main__":
    main()
