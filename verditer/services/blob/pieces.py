"""The content of append and page blobs: an interval map of pieces that change in place. Called inside transactions.

A `Piece` is a run of bytes from `start` on, in its row when small, else a slice of an extent. Pieces never overlap; where there
is none, a page blob reads as zeros and costs nothing. Writing over a piece cuts it: what remains keeps its bytes where they are.

**Snapshots** share the rows with the blob, so taking one is O(1): it opens a `View` at its tick, and the blob's next pieces
carry that tick as their `epoch`. A view sees a piece when `epoch < view <= died`. Current pieces have not died (`NOW`); one
that is written over stays as `FormerPiece` if a view still sees it, and is dropped otherwise. At any view the visible pieces,
current and former, are disjoint. What changed since a snapshot is what carries its tick or a later one. A record that goes
away closes its view, and the collector removes in small steps what nobody sees (`sweep`): dropping is O(1) as well.

**One state for a long download** (contract G3): a reader takes all pieces of its range in one transaction: slices by name,
and the bytes of small pieces. Extents never change and outlive their readers (`services/activity.py`), and the small bytes of a
content are bounded: a write that finds more than `SMALL_BYTES` of them has them moved to an extent (`spill.py`). So memory
holds a few megabytes and the list of slices, whatever is written meanwhile.

An extent is let go when no piece of its content is left in it (`ExtentUse`); until then all of it stays.
"""

import heapq
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter

import msgspec

from verditer.core.limits import MIB
from verditer.core.records.blob import Blob
from verditer.core.records.content import (
    ClosedView,
    ExtentUse,
    FormerPiece,
    Garbage,
    Piece,
    Pieces,
    SharedContent,
    SharedGarbage,
    SmallPiece,
    View,
)
from verditer.core.records.record import Span, key_of, span_of
from verditer.partition.engine import Scope, Transaction
from verditer.stream.intake import Received

replace = msgspec.structs.replace

NOW = 2**63 - 1  # the view of the blob itself: behind every tick
SMALL_BYTES = 4 * MIB
MAX_FORMER = 8 * MIB  # no piece of a page blob is longer, so the former ones of a range are found by where they start
_by_start = attrgetter("start")

Place = tuple[type[Piece], bytes]
"""How far a sweep has come: the kind of piece, and the key of the last one it looked at."""
START: Place = (Piece, b"")


def new_pieces(tx: Transaction, content_id: int, scope: Scope) -> Pieces:
    """An empty content, seen by the blob about to be put."""
    tx.put(View(content_id=content_id, view=NOW, scope=scope))
    return Pieces(epoch=0, view=NOW)


def adopt_pieces(tx: Transaction, content_id: int, scope: Scope, rows: Iterable[Piece]) -> Pieces:
    """A content that names what another one sees: small pieces are copied, slices of extents shared."""
    change = _Change(tx, content_id, new_pieces(tx, content_id, scope))
    for row in rows:
        change.put(
            Piece(
                content_id=content_id,
                start=row.start,
                length=row.length,
                epoch=0,
                data=row.data,
                extent=row.extent,
                offset=row.offset,
            )
        )
    tx.put(SharedContent(content_id=content_id))
    return change.end()


def write_piece(tx: Transaction, blob: Blob, start: int, received: Received) -> Pieces:
    """Put bytes over whatever is there. Like every change here it gives what the blob's record has to say from now on."""
    change = _Change(tx, blob.content_id, pieces_of(blob))
    change.clear(start, start + received.size)
    change.put(_piece(blob, start, received))
    return change.end()


def append_piece(tx: Transaction, blob: Blob, received: Received) -> Pieces:
    """The same behind the end, where nothing is."""
    change = _Change(tx, blob.content_id, pieces_of(blob))
    change.put(_piece(blob, blob.size, received))
    return change.end()


def clear_pieces(tx: Transaction, blob: Blob, start: int, end: int) -> Pieces:
    change = _Change(tx, blob.content_id, pieces_of(blob))
    change.clear(start, end)
    return change.end()


def move_pieces(tx: Transaction, blob: Blob, small: Sequence[Piece], extent: str) -> Pieces:
    """The bytes of these pieces are now in an extent, one behind the other. Pieces that changed meanwhile stay as they are."""
    change = _Change(tx, blob.content_id, pieces_of(blob))
    current = {row.start: row for row in pieces_at(tx, small)}
    moved: list[Piece] = []
    offset = 0
    for row in small:
        if current.get(row.start) == row:
            change.remove(row)
            _join(moved, replace(row, data=b"", extent=extent, offset=offset))
        offset += row.length
    for row in moved:
        change.put(row)
    return change.end()


def small_pieces(tx: Transaction, content_id: int) -> list[Piece]:
    """The current pieces that have their bytes with them, in order."""
    return pieces_at(tx, [*tx.scan(SmallPiece, span_of(content_id))])


def pieces_at(tx: Transaction, rows: Sequence[Piece | SmallPiece]) -> list[Piece]:
    """The current pieces at these places. Neighbours are fetched together."""
    found: list[Piece] = []
    first = 0
    for number, row in enumerate(rows):
        following = rows[number + 1] if number + 1 < len(rows) else None
        if following is None or row.start + row.length != following.start:
            span = Span(key_of(row.content_id, rows[first].start), key_of(row.content_id, row.start) + b"\0")
            found += tx.scan(Piece, span)
            first = number + 1
    return found


def visible(tx: Transaction, blob: Blob, start: int, end: int) -> Iterator[Piece]:
    """The pieces this blob or snapshot sees between two positions, in order. The first and the last may reach beyond."""
    view = pieces_of(blob).view
    current = (row for row in _current(tx, blob.content_id, start, end) if row.epoch < view)
    if view == NOW:
        return current
    span = Span(key_of(blob.content_id, max(0, start - MAX_FORMER)), key_of(blob.content_id, end))
    former = (row for row in tx.scan(FormerPiece, span) if row.epoch < view <= row.died and row.end > start)
    return heapq.merge(current, former, key=_by_start)


def cut(row: Piece, start: int, end: int) -> Piece:
    """The part of a piece between two positions."""
    low, high = max(row.start, start), min(row.end, end)
    if (low, high) == (row.start, row.end):
        return row
    skipped = low - row.start
    if row.extent is None:
        return replace(row, start=low, length=high - low, data=row.data[skipped : high - row.start])
    return replace(row, start=low, length=high - low, offset=row.offset + skipped)


def open_view(tx: Transaction, blob: Blob, tick: int) -> tuple[Pieces, Pieces]:
    """For a snapshot taken at `tick`: what the blob's record says from now on, and what the snapshot's says."""
    pieces = pieces_of(blob)
    own = tx.get(View, blob.content_id, pieces.view)
    assert own is not None, "invariant 5: a record sees its content through a view"
    tx.put(replace(own, view=tick))
    return replace(pieces, epoch=tick), replace(pieces, view=tick)


def close_view(tx: Transaction, blob: Blob) -> None:
    """The record goes away; the collector calls `sweep` for what only it has seen."""
    view = tx.get(View, blob.content_id, pieces_of(blob).view)
    if view is not None:
        tx.delete(View, view.content_id, view.view)
        tx.put(ClosedView(content_id=view.content_id, view=view.view, scope=view.scope))


def sweep(tx: Transaction, closed: ClosedView, after: Place, limit: int) -> Place | None:
    """Remove some pieces that nobody sees any more, from a place on. Gives the next place, or None when all is done."""
    views = [view.view for view in tx.scan(View, span_of(closed.content_id))]
    kind, key = after
    span = span_of(closed.content_id)
    rows = list(tx.scan(kind, span.after(key) if key else span, limit=limit))
    change = _Change(tx, closed.content_id, None)
    for row in rows:
        if not _is_seen(views, row.epoch, row.died if isinstance(row, FormerPiece) else NOW):
            change.remove(row)
    change.end_books()
    if len(rows) == limit:
        return kind, rows[-1].key()
    if kind is Piece:
        return sweep(tx, closed, (FormerPiece, b""), limit)
    tx.delete(ClosedView, closed.content_id, closed.view)
    if not views:
        tx.delete(SharedContent, closed.content_id)
    return None


def pieces_of(blob: Blob) -> Pieces:
    assert blob.pieces is not None, "invariant 5: append and page blobs are made of pieces"
    return blob.pieces


def _current(tx: Transaction, content_id: int, start: int, end: int) -> Iterator[Piece]:
    before = tx.scan(Piece, Span(key_of(content_id), key_of(content_id, start)), limit=1, reverse=True)
    yield from (row for row in before if row.end > start)
    yield from tx.scan(Piece, Span(key_of(content_id, start), key_of(content_id, end)))


def _is_seen(views: Sequence[int], epoch: int, died: int) -> bool:
    """Whether one of these views, in order, is behind `epoch` and not behind `died`."""
    first = bisect_right(views, epoch)
    return first < len(views) and views[first] <= died


def _piece(blob: Blob, start: int, received: Received) -> Piece:
    return Piece(
        content_id=blob.content_id,
        start=start,
        length=received.size,
        epoch=pieces_of(blob).epoch,
        data=received.inline or b"",
        extent=received.extent,
    )


def _join(rows: list[Piece], row: Piece) -> None:
    """Add a piece; one that continues the last, in the blob and in the extent, becomes part of it."""
    if rows:
        last = rows[-1]
        continues = last.end == row.start and last.epoch == row.epoch and last.offset + last.length == row.offset
        if continues and last.length + row.length <= MAX_FORMER:
            rows[-1] = replace(last, length=last.length + row.length)
            return
    rows.append(row)


class _Change:
    """Rows of one content come and go; at the end the books agree: small bytes, and what each extent is used for."""

    def __init__(self, tx: Transaction, content_id: int, pieces: Pieces | None) -> None:
        self._tx = tx
        self._content_id = content_id
        self._pieces = pieces
        self._small = 0
        self._uses: Counter[str] = Counter()

    def put(self, row: Piece) -> None:
        self._tx.put(row)
        if row.extent is not None:
            self._uses[row.extent] += 1
        elif type(row) is Piece:
            self._tx.put(SmallPiece(content_id=row.content_id, start=row.start, length=row.length))
            self._small += row.length

    def remove(self, row: Piece) -> None:
        self._tx.delete(type(row), *[getattr(row, name) for name in row.KEY])
        if row.extent is not None:
            self._uses[row.extent] -= 1
        elif type(row) is Piece:
            self._tx.delete(SmallPiece, row.content_id, row.start)
            self._small -= row.length

    def clear(self, start: int, end: int) -> None:
        assert self._pieces is not None
        died = self._pieces.epoch
        kept = _EpochsSeen(self._tx, self._content_id, died)
        for row in list(_current(self._tx, self._content_id, start, end)):
            self.remove(row)
            if row.start < start:
                self.put(cut(row, row.start, start))
            if end < row.end:
                self.put(cut(row, end, row.end))
            if kept.is_seen(row.epoch):
                self.put(FormerPiece(**msgspec.structs.asdict(cut(row, start, end)), died=died))

    def end(self) -> Pieces:
        assert self._pieces is not None
        self.end_books()
        return replace(self._pieces, small_bytes=self._pieces.small_bytes + self._small)

    def end_books(self) -> None:
        for extent, change in self._uses.items():
            if not change:
                continue
            use = self._tx.get(ExtentUse, self._content_id, extent)
            count = (use.count if use is not None else 0) + change
            if count:
                self._tx.put(ExtentUse(content_id=self._content_id, extent=extent, count=count))
            else:
                self._tx.delete(ExtentUse, self._content_id, extent)
                shared = self._tx.get(SharedContent, self._content_id) is not None
                self._tx.put((SharedGarbage if shared else Garbage)(since=self._tx.now, extent=extent))


class _EpochsSeen:
    """Whether a piece that dies now is still seen. Most pieces die in the epoch they were born in, which needs no look."""

    def __init__(self, tx: Transaction, content_id: int, died: int) -> None:
        self._tx = tx
        self._content_id = content_id
        self._died = died
        self._views: list[int] | None = None

    def is_seen(self, epoch: int) -> bool:
        if epoch == self._died:
            return False
        if self._views is None:
            self._views = [view.view for view in self._tx.scan(View, span_of(self._content_id))]
        return _is_seen(self._views, epoch, self._died)


def spans(rows: Iterable[Piece], start: int, end: int) -> Iterator[tuple[int, int]]:
    """From where to where pieces reach, within two positions."""
    return ((max(row.start, start), min(row.end, end)) for row in rows)
