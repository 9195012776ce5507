"""The operation tables: every row of a service has an implementation."""

import pytest

from verditer.rest.route_cache import ONE_OF_MANY
from verditer.rest.service import Service
from verditer.rest.services import SERVICES


@pytest.mark.parametrize("service", SERVICES, ids=lambda service: service.name)
def test_every_operation_is_implemented(service: Service) -> None:
    assert [op.name for op in service.operations if not op.is_built] == []
    assert len(service.operations) >= 17


@pytest.mark.parametrize("service", SERVICES, ids=lambda service: service.name)
def test_no_header_decides_about_an_access_that_is_cached(service: Service) -> None:
    """The cache of routes knows the request line only. Where a header needs a permission of its own, nothing may be cached."""
    for op in service.operations:
        for param in op.takes.lettered:
            assert param.query or op.route.level in ONE_OF_MANY, op.name
