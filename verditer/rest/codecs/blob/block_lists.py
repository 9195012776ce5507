"""Block lists: the request document of Put Block List and the response document of Get Block List."""

import base64
import binascii

from verditer.core.errors import Code, StorageError
from verditer.core.limits import MAX_BLOCK_ID
from verditer.rest.codecs.xml import parse, render
from verditer.services.blob.answers import BlockLists
from verditer.services.blob.kinds.blocklist import Search

_SEARCHES = {search.value: search for search in Search}


def parse_block_list(document: bytes) -> dict[str, object]:
    blocks: list[tuple[Search, bytes]] = []
    length: int | None = None
    for child in parse(document, "BlockList"):
        search = _SEARCHES.get(child.tag)
        if search is None:
            raise StorageError(Code.InvalidXmlDocument)
        text = (child.text or "").strip()
        blocks.append((search, _block_id(text)))
        if len(text) != (length := length or len(text)):
            raise StorageError(Code.InvalidBlockId)
    return {"blocks": tuple(blocks), "document": document}


def _block_id(text: str) -> bytes:
    try:
        decoded = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise StorageError(Code.InvalidBlockId) from None
    if not 0 < len(decoded) <= MAX_BLOCK_ID:
        raise StorageError(Code.InvalidBlockId)
    return decoded


def render_block_lists(lists: BlockLists, decoded: object) -> bytes:
    parts = []
    if lists.committed is not None:
        parts.append(_render("CommittedBlocks", lists.committed))
    if lists.uncommitted is not None:
        parts.append(_render("UncommittedBlocks", lists.uncommitted))
    return render(f"<BlockList>{''.join(parts)}</BlockList>")


def _render(name: str, blocks: list[tuple[bytes, int]]) -> str:
    if not blocks:
        return f"<{name} />"
    rows = [f"<Block><Name>{base64.b64encode(id).decode()}</Name><Size>{size}</Size></Block>" for id, size in blocks]
    return f"<{name}>{''.join(rows)}</{name}>"
