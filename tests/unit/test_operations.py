"""The operation tables: every row of a service has an implementation."""

import pytest

from verditer.rest.service import Service
from verditer.rest.services import SERVICES


@pytest.mark.parametrize("service", SERVICES, ids=lambda service: service.name)
def test_every_operation_is_implemented(service: Service) -> None:
    assert [op.name for op in service.operations if not op.is_built] == []
    assert len(service.operations) >= 17
