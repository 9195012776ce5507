"""Limits of this server, and what it tells clients about sizes."""

from dataclasses import dataclass

from verditer.core.limits import KIB, MIB

MAX_IO_BYTES = 1 * MIB  # of one READ, WRITE or other transfer, as NEGOTIATE announces it
MAX_IO_BYTES_2_0_2 = 64 * KIB
MAX_FRAME_BYTES = MAX_IO_BYTES + 128 * KIB  # one transfer, and the rest of its chain
MAX_FRAME_BYTES_BEFORE_LOGIN = 64 * KIB
MAX_CHAIN = 64  # requests in one frame; clients send up to eight
MAX_RUNNING_BYTES = 4 * MIB  # requests and the answers they ask for, of one connection; then nothing more is read from it
MIN_REQUEST_BYTES = 4 * KIB  # what every running request counts at least
MAX_PENDING = 1024  # requests of one connection whose answer comes later
MAX_PENDING_BYTES = 8 * MIB
MAX_SESSIONS = 1024  # of one connection
MAX_LOGINS = 16  # of one connection that have begun and not ended
MAX_TREES = 4096  # of one session
MAX_OPENS = 16384  # of one session: as many as Samba allows; the server keeps some 2 KiB for each


@dataclass(frozen=True, kw_only=True, slots=True)
class SmbLimits:
    """Times in seconds. A test may shorten them."""

    max_connections: int = 4096
    login_seconds: float = 45.0  # from the connection to the first login
    frame_seconds: float = 60.0  # a frame that has begun has to go on arriving
    write_stall_seconds: float = 60.0  # a client that does not take its answers
    failure_delay_seconds: float = 0.1  # after the first wrong key; doubled with each further one
    max_failure_delay_seconds: float = 4.0
