"""Requests of the tests of page blobs."""

from collections.abc import Mapping
from typing import Any

from tests.rest.client import Box, Reply

PAGE = 512
KIB, MIB, TIB = 1 << 10, 1 << 20, 1 << 40


def create(box: Box, size: int, headers: Mapping[str, str] | None = None, **more: Any) -> Reply:
    sent = {"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": str(size), **(headers or {})}
    return box.blob("PUT", headers=sent, **more)


def write(box: Box, start: int, data: bytes, headers: Mapping[str, str] | None = None, **more: Any) -> Reply:
    sent = {"x-ms-page-write": "update", "x-ms-range": f"bytes={start}-{start + len(data) - 1}", **(headers or {})}
    return box.blob("PUT", "blob", "page", sent, data, **more)


def clear(box: Box, start: int, end: int, headers: Mapping[str, str] | None = None, **more: Any) -> Reply:
    sent = {"x-ms-page-write": "clear", "x-ms-range": f"bytes={start}-{end - 1}", **(headers or {})}
    return box.blob("PUT", "blob", "page", sent, **more)


def resize(box: Box, size: int, headers: Mapping[str, str] | None = None) -> Reply:
    return box.blob("PUT", "blob", "properties", {"x-ms-blob-content-length": str(size), **(headers or {})})


def snapshot(box: Box) -> str:
    return box.blob("PUT", comp="snapshot")["x-ms-snapshot"]


def ranges(box: Box, headers: Mapping[str, str] | None = None, **query: str) -> list[tuple[int, int]]:
    """Start and end (exclusive) of the page ranges; cleared ranges are negative."""
    reply = box.blob("GET", comp="pagelist", headers=headers, query=query)
    assert reply.status == 200, reply.answer
    return ranges_in(reply)


def ranges_in(reply: Reply) -> list[tuple[int, int]]:
    found = []
    for item in reply.xml:
        if item.tag in ("PageRange", "ClearRange"):
            start, end = int(item.findtext("Start") or ""), int(item.findtext("End") or "") + 1
            found.append((start, end) if item.tag == "PageRange" else (-start, -end))
    return found
