"""URLs that the server may be asked to read, and the operator's list of hosts that it may read from."""

import re
from urllib.parse import SplitResult, quote, urlsplit

from verditer.config import Outbound
from verditer.core.caches import bounded_cache

MAX_URL = 2048
DEFAULT_PORTS = {"http": 80, "https": 443}


@bounded_cache(256, 1024)  # many copies have one source, and every copy compares its source with the address of this server
def parse_url(text: str) -> SplitResult | None:
    """An absolute http or https URL without credentials, or None."""
    if len(text) > MAX_URL or re.search(r"[\x00-\x20\x7f]", text):
        return None
    try:
        url = urlsplit(text)
        port = url.port
    except ValueError:
        return None
    if url.scheme not in DEFAULT_PORTS or not url.hostname or "@" in url.netloc or port == 0:
        return None
    return url


def is_allowed(outbound: Outbound, url: SplitResult) -> bool:
    if not outbound.allowed or not outbound.hosts:
        return outbound.allowed
    name = (url.hostname or "").lower()
    port = url.port or DEFAULT_PORTS[url.scheme]
    return any(_matches(host.lower(), name, port) for host in outbound.hosts)


def _matches(host: str, name: str, port: int) -> bool:
    pattern, _, wanted = host.rpartition(":") if host.rpartition(":")[2].isdigit() else (host, "", "")
    if wanted and int(wanted) != port:
        return False
    pattern = pattern.strip("[]")
    return name.endswith(pattern[1:]) if pattern.startswith("*.") else name == pattern


def request_target(url: SplitResult) -> str:
    """Path and query as they are. Characters that cannot be in a request line are percent-encoded."""
    path = quote(url.path or "/", safe="/%:@!$&'()*+,;=~-._")
    return f"{path}?{quote(url.query, safe='/%:@!$&()*+,;=~-._?')}" if url.query else path
