"""Listening sockets: from an address in the configuration to sockets that accept connections.

They are opened before worker processes are forked, so that all workers listen on the same ones.
"""

import errno
import ipaddress
import logging
import socket
from collections.abc import Mapping

import msgspec

logger = logging.getLogger("verditer")
_BACKLOG = 1024


class ListenAddress(msgspec.Struct, frozen=True, kw_only=True):
    host: str = "127.0.0.1"
    port: int  # 0: any free port
    any_if_taken: bool = False  # when the port is in use, any free port is used instead


class ListenError(OSError):
    """A listening socket cannot be opened. `name` says for what, such as "blob", and `is_about_host` what should be changed."""

    def __init__(self, name: str, address: ListenAddress, cause: OSError) -> None:
        self.name = name
        self.is_about_host = isinstance(cause, socket.gaierror) or cause.errno == errno.EADDRNOTAVAIL
        self.reason = (cause.strerror or str(cause)).lower()
        super().__init__(cause.errno, f"cannot listen on {address.host} port {address.port} ({name}): {self.reason}")


def open_all(addresses: Mapping[str, ListenAddress]) -> dict[str, list[socket.socket]]:
    """The listening sockets of every name, or none at all."""
    opened: dict[str, list[socket.socket]] = {}
    try:
        for name, address in addresses.items():
            opened[name] = open_sockets(address, name)
    except BaseException:
        close_all(opened)
        raise
    return opened


def close_all(opened: Mapping[str, list[socket.socket]]) -> None:
    for sockets in opened.values():
        for listening in sockets:
            listening.close()


def open_sockets(address: ListenAddress, name: str) -> list[socket.socket]:
    """One socket for each network address of the host, all on the same port."""
    try:
        return _open_sockets(address.host, address.port)
    except OSError as error:
        if not (address.any_if_taken and error.errno == errno.EADDRINUSE):
            raise ListenError(name, address, error) from None
    opened = open_sockets(ListenAddress(host=address.host, port=0), name)
    free = opened[0].getsockname()[1]
    logger.warning("port %d is in use, so the %s port is %d this time; --%sPort chooses a port", address.port, name, free, name)
    return opened


def _open_sockets(host: str, port: int) -> list[socket.socket]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    opened: list[socket.socket] = []
    try:
        for family, address in dict.fromkeys((family, address) for family, *_, address in found):
            chosen = opened[0].getsockname()[1] if opened else port
            opened.append(_listen(family, (address[0], chosen, *address[2:])))
    except BaseException:
        close_all({host: opened})
        raise
    return opened


def _listen(family: int, address: tuple[object, ...]) -> socket.socket:
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listening.bind(address)
        listening.listen(_BACKLOG)
    except BaseException:
        listening.close()
        raise
    return listening


def is_ip_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
