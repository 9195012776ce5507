"""The dashboard for Grafana in the documents asks for metrics and labels that the server has."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from verditer.serving.metrics import Metrics
from verditer.serving.request_summary import RequestSummary

DASHBOARD = Path(__file__).parents[2] / "docs/grafana.json"
OF_PROMETHEUS = {"instance", "job"}  # labels that every metric has


def expressions() -> Iterator[str]:
    document = json.loads(DASHBOARD.read_text())
    yield from (variable["query"] for variable in document["templating"]["list"] if variable["type"] == "query")
    yield from (target["expr"] for panel in document["panels"] for target in panel["targets"])


@pytest.fixture(scope="module")
def labels_of() -> dict[str, set[str]]:
    """By the names of the samples that a server shows after one request."""
    metrics = Metrics()
    metrics.record(
        RequestSummary(
            time=0,
            service="blob",
            operation="PutBlob",
            method="PUT",
            path="/a/c/b",
            status=201,
            error_code=None,
            bytes_in=1,
            bytes_out=1,
            seconds=0.1,
            request_id="",
            client="",
        )
    )
    registry = CollectorRegistry()
    registry.register(metrics)
    samples = [sample for family in registry.collect() for sample in family.samples]
    return {sample.name: set(sample.labels) for sample in samples}


@pytest.mark.parametrize("expression", list(expressions()))
def test_every_metric_of_the_dashboard_exists_with_its_labels(expression: str, labels_of: dict[str, set[str]]) -> None:
    names = set(re.findall(r"\b(verditer_\w+|up\b)", expression)) - {"up"}
    assert names <= labels_of.keys()
    assert names or "up{" in expression
    grouped = {label.strip() for group in re.findall(r"\bby \(([^)]*)\)", expression) for label in group.split(",")}
    matched = set(re.findall(r'(\w+)=~?"', expression))
    for name in names:
        assert grouped | matched <= labels_of[name] | OF_PROMETHEUS
