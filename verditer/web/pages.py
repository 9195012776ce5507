"""The pages of the explorer: static files of this package, and the security headers of everything that is a page."""

import base64
import hashlib
from functools import cache
from pathlib import Path

from verditer.rest.http.message import Request, Response

PREFIX = "/static/"
_FOLDER = Path(__file__).parent / "static"
_TYPES = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
}
_LOCKED_STYLE = (
    ":root{color-scheme:light dark}"
    "body{font:16px/1.6 system-ui;max-width:36rem;margin:12vh auto;padding:0 1rem}input,button{font:inherit;padding:.3rem .6rem}"
)
_WRONG = (
    "<p><strong>This is not the token of the running server.</strong> Each start has a new one, unless --adminToken sets it.</p>"
)
_LOCKED = f"""<!doctype html><html lang="en"><meta charset="utf-8"><title>Verditer</title><style>{_LOCKED_STYLE}</style>
<h1>Verditer</h1><p>Open the link that the server printed when it started (<code>Explorer http://…/?token=…</code>), or paste its
token:</p><form><label>Token <input name="token" type="password" autofocus required></label> <button>Open</button></form></html>
"""


def first_page(request: Request, cookie: str | None) -> Response:
    """The page from which every view of the explorer is reached; `cookie` is stored when the start link was opened."""
    response = _file_answer("index.html", request)
    if cookie is not None:
        response.headers.append(("Set-Cookie", cookie))
    return response


def static_file(request: Request) -> Response | None:
    name = request.target.partition("?")[0].removeprefix(PREFIX)
    return _file_answer(name, request) if name in _names() else None


def locked_page(request: Request) -> Response:
    """For a browser that has no cookie. Its token, if it sent one, is wrong."""
    body = _LOCKED.replace("<p>", f"{_WRONG}<p>", 1) if "token=" in request.target else _LOCKED
    digest = base64.b64encode(hashlib.sha256(_LOCKED_STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    headers = [("Content-Type", _TYPES["html"]), *_page_headers(policy)]
    return Response(status=401, headers=headers, body=body.encode())


def _file_answer(name: str, request: Request) -> Response:
    body, etag = _content(name)
    headers = [("Content-Type", _TYPES[name.rpartition(".")[2]]), ("ETag", etag), *_page_headers(_policy(request))]
    if request.headers.get("if-none-match") == etag and name != "index.html":
        return Response(status=304, headers=headers)
    return Response(status=200, headers=headers, body=body)


def _page_headers(policy: str) -> list[tuple[str, str]]:
    return [
        ("Content-Security-Policy", policy),
        ("Cache-Control", "no-cache"),
        ("X-Content-Type-Options", "nosniff"),
        ("X-Frame-Options", "DENY"),
        ("Referrer-Policy", "no-referrer"),
        ("Cross-Origin-Opener-Policy", "same-origin"),
        ("Cross-Origin-Resource-Policy", "same-origin"),
    ]


def _policy(request: Request) -> str:
    """Scripts and styles come from `/static/` only: what users have stored has the same origin and must never run."""
    host = request.headers.get("host", "")
    own = "'self'" if host.startswith("[") else f"{host}{PREFIX}"  # a policy cannot name an IPv6 address
    return (
        f"default-src 'none'; script-src {own}; style-src {own}; img-src {own} blob:; connect-src 'self'; form-action 'self'; "
        "worker-src 'none'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )


@cache
def _names() -> frozenset[str]:
    return frozenset(each.name for each in _FOLDER.iterdir() if each.name.rpartition(".")[2] in _TYPES)


@cache
def _content(name: str) -> tuple[bytes, str]:
    body = (_FOLDER / name).read_bytes()
    return body, f'"{hashlib.sha256(body).hexdigest()[:32]}"'
