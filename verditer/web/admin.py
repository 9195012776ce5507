"""The admin port: it checks who asks (`access.py`) and passes the request on to health, metrics, control or the explorer."""

from collections.abc import Mapping
from urllib.parse import parse_qsl

from verditer.core.errors import StorageError
from verditer.rest.http.message import ClientGone, Request, Response
from verditer.rest.statuses import STATUS
from verditer.web import pages, storage
from verditer.web.access import Access, Proof, Refused
from verditer.web.answers import InvalidDocument, json_answer
from verditer.web.api import Api
from verditer.web.control import Control
from verditer.web.events import Events
from verditer.web.storage import Storage

EVENTS = "/api/events"
_READS = ("GET", "HEAD")
_TRUSTED = (Proof.AUTHORIZATION, Proof.OWN_PAGE)


class Admin:
    def __init__(
        self, access: Access, control: Control, api: Api, events: Events, storage: Storage, *, read_only: bool = False
    ) -> None:
        self._access = access
        self._control = control
        self._api = api
        self._storage = storage
        self._read_only = read_only
        self.events = events

    async def handle(self, request: Request) -> Response:
        try:
            if self._control.is_open(request):
                return await self._control.handle(request)
            return await self._dispatch(request, self._access.check(request))
        except Refused as refused:
            wants_page = "text/html" in request.headers.get("accept", "")
            return pages.locked_page(request) if refused.status == 401 and wants_page else refused.response()
        except StorageError as error:
            return json_answer(STATUS[error.code.error_class], {"error": error.message, "code": error.code.azure_code})
        except InvalidDocument as problem:
            return json_answer(400, {"error": str(problem)})
        except ClientGone:
            return Response(status=400, headers=[], close=True)

    async def _dispatch(self, request: Request, proof: Proof) -> Response:
        path, _, query = request.target.partition("?")
        may_write = not self._read_only and proof in _TRUSTED
        if path.startswith(storage.PREFIX):
            return await self._storage.handle(request, read_only=not may_write)
        if path == "/" and request.method in _READS:
            return pages.first_page(request, self._access.cookie(request) if proof is Proof.START_LINK else None)
        if path.startswith(pages.PREFIX) and request.method in _READS:
            return pages.static_file(request) or json_answer(404, {"error": "not found"})
        if path == EVENTS and request.method == "GET":
            return self.events.answer(_parameters(query))
        call = self._api.find(request.method, path)
        if request.method not in _READS and proof not in _TRUSTED:
            raise Refused(403, "the request does not say which page sent it")
        if call is not None:
            return await call(self._api, request, _parameters(query))
        if request.method not in _READS and self._read_only:
            raise Refused(403, "the admin port was started with --adminReadOnly")
        return await self._control.handle(request)


def _parameters(query: str) -> Mapping[str, str]:
    try:
        return dict(parse_qsl(query, keep_blank_values=True, max_num_fields=20))
    except ValueError:
        raise InvalidDocument("the query has too many parameters") from None
