"""Route: the row of the operation that a request calls, and the resource that the operation acts on."""

from verditer.rest.router import Router
from verditer.rest.service import Service
from verditer.rest.stages import Accepted, Routed


class Routing:
    def __init__(self, service: Service, router: Router) -> None:
        self._service = service
        self._router = router

    def route(self, accepted: Accepted) -> Routed:
        request, address = accepted.request, accepted.address
        level, target = self._service.locate(address, request.headers)
        op = self._router.find(request, address, level, self._service.verb(request))
        return Routed(
            request=request,
            request_id=accepted.request_id,
            batch=accepted.batch,
            address=address,
            version=accepted.version,
            op=op,
            target=target,
        )
