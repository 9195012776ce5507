"""Times: ticks, which are whole numbers of 100 ns since 0001-01-01 UTC, and their text forms.

ETags, snapshots and leases are ticks. RFC 1123 is the form of modification times, ISO 8601 that of policies and snapshots.
"""

import re
import time
from datetime import UTC, datetime, timedelta
from functools import lru_cache

TICKS_PER_SECOND = 10_000_000
UNIX_EPOCH = 621_355_968_000_000_000  # ticks between 0001-01-01 and 1970-01-01
MAX_TICKS = 3_155_378_975_999_999_999  # 9999-12-31T23:59:59.9999999Z

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_RFC1123 = re.compile(
    r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), ([0-9]{1,2}) ([A-Z][a-z]{2}) ([0-9]{4}) ([0-9]{2}):([0-9]{2}):([0-9]{2}) GMT"
)
_ISO = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})"
    r"(?:T([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,9}))?)?(Z|[+-](?:0[0-9]|1[0-4]):[0-5][0-9])?)?",
)


def system_ticks() -> int:
    """The clock of the machine. Only `app.py` passes it on; all other code receives the time as an argument."""
    return time.time_ns() // 100 + UNIX_EPOCH


def seconds(count: float) -> int:
    """A span of time in ticks."""
    return int(count * TICKS_PER_SECOND)


def truncate(ticks: int) -> int:
    """`ticks` cut to the whole second, which is the resolution of RFC 1123 dates."""
    return ticks - ticks % TICKS_PER_SECOND


def rfc1123(ticks: int) -> str:
    return _rfc1123(ticks // TICKS_PER_SECOND)


@lru_cache(maxsize=4096)
def _rfc1123(whole_seconds: int) -> str:
    moment = datetime.min + timedelta(seconds=whole_seconds)
    return f"{_DAYS[moment.weekday()]}, {moment.day:02} {_MONTHS[moment.month - 1]} {moment.year:04} {moment:%H:%M:%S} GMT"


def iso(ticks: int) -> str:
    """`2021-06-08T02:05:09.1234567Z`: snapshots, versions, access policies, error texts."""
    return f"{_iso(ticks // TICKS_PER_SECOND)}.{ticks % TICKS_PER_SECOND:07}Z"


@lru_cache(maxsize=4096)
def _iso(whole_seconds: int) -> str:
    moment = datetime.min + timedelta(seconds=whole_seconds)
    return f"{moment.year:04}-{moment:%m-%dT%H:%M:%S}"


def parse_rfc1123(text: str) -> int | None:
    match = _RFC1123.fullmatch(text.strip())
    if match is None or match[2] not in _MONTHS:
        return None
    day, year, hour, minute, second = (int(match[i]) for i in (1, 3, 4, 5, 6))
    return _ticks(year, _MONTHS.index(match[2]) + 1, day, hour, minute, second)


def parse_iso(text: str) -> int | None:
    """ISO 8601 as SAS tokens and policies use it: a date, a minute, a second, or a fraction of up to seven digits."""
    match = _ISO.fullmatch(text.strip())
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(match[i] or 0) for i in range(1, 7))
    ticks = _ticks(year, month, day, hour, minute, second)
    if ticks is None:
        return None
    ticks += int((match[7] or "0")[:7].ljust(7, "0"))
    zone = match[8]
    if zone and zone != "Z":
        offset = (int(zone[1:3]) * 60 + int(zone[4:6])) * 60 * TICKS_PER_SECOND
        ticks += offset if zone[0] == "-" else -offset
    return ticks if 0 <= ticks <= MAX_TICKS else None


def _ticks(year: int, month: int, day: int, hour: int, minute: int, second: int) -> int | None:
    try:
        moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None
    return int((moment - datetime.min.replace(tzinfo=UTC)).total_seconds()) * TICKS_PER_SECOND
