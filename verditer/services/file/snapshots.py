"""Share snapshots: one record each, whatever the share holds. What only a deleted snapshot saw is removed by the collector.

A snapshot opens a view of the share's tree and of the contents of its files (`ContentView` under the share's id), and gives the
share a new epoch. From then on a changed entry or interval leaves its former state behind, if some snapshot sees it.
"""

import msgspec

from verditer.core.dates import truncate
from verditer.core.errors import Code, StorageError
from verditer.core.limits import MAX_METADATA, MAX_SHARE_SNAPSHOTS
from verditer.core.names import ShareName, check_metadata
from verditer.core.records.content import ContentView
from verditer.core.records.file import ClosedShareView, FormerFileEntry, ShareSnapshot
from verditer.core.records.record import Span, span_of
from verditer.partition.engine import Transaction
from verditer.services.content.views import sweep_former_content
from verditer.services.context import Context
from verditer.services.file.answers import SnapshotTaken
from verditer.services.file.current import ShareViews, require_share


class SnapshotShare(msgspec.Struct, frozen=True, kw_only=True):
    metadata: dict[str, str] = {}


async def snapshot_share(ctx: Context, target: ShareName, request: SnapshotShare) -> SnapshotTaken:
    """The share's scope excludes every write below it, so the snapshot sees each of them wholly or not at all."""
    check_metadata(request.metadata, MAX_METADATA)

    def commit(tx: Transaction) -> SnapshotTaken:
        share = require_share(tx, target)
        taken = [snapshot.snapshot for snapshot in tx.scan(ShareSnapshot, span_of(share.id))]
        if len(taken) >= MAX_SHARE_SNAPSHOTS:
            raise StorageError(Code.ShareSnapshotCountExceeded)
        view = tx.tick(max(share.etag, share.epoch))
        whole_second = truncate(view)  # as Azure names snapshots, and as SMB can name them
        name = whole_second if not taken or whole_second > taken[-1] else view
        fields = msgspec.structs.asdict(share) | {"lease": None, "policies": ()}
        if request.metadata:
            fields |= {"metadata": request.metadata, "etag": view}
        snapshot = ShareSnapshot(**fields, snapshot=name, view=view)
        tx.put(snapshot)
        tx.put(ContentView(content_id=share.id, view=view, scope=target.scope))
        tx.put(msgspec.structs.replace(share, epoch=view))
        return SnapshotTaken(etag=snapshot.etag, snapshot=name)

    return await ctx.engine.write([target.scope], commit)


def sweep_share_view(tx: Transaction, closed: ClosedShareView, span: Span, limit: int) -> Span | None:
    """Examine up to `limit` former states and remove those that no snapshot sees. Returns the rest of the span, or None."""
    views = ShareViews(closed.share_id)
    rows = list(tx.scan(FormerFileEntry, span, limit=limit))
    for row in rows:
        if not views.sees(tx, row.epoch, row.died):
            if row.intervals is not None:  # directories have no content
                sweep_former_content(tx, row, closed.scope)
            tx.delete(FormerFileEntry, *row.key_parts())
    if len(rows) == limit:
        return span.after(rows[-1].key())
    tx.delete(ClosedShareView, closed.share_id, closed.view)
    return None
