"""ETags: the tick of the write that made the version.

`HybridClock.tick` never gives a tick twice (invariant 4), so an ETag names one version of one object for ever, and the same
number, cut to its second, is the Last-Modified date. The wire forms are `rest/codecs/etag.py`.
"""

from typing import TypeAlias

Etag: TypeAlias = int
