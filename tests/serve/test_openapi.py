"""Whatever the description allows, and what it does not, is answered as described: no 5xx."""

import os
import re
from pathlib import Path

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import response_schema_conformance, status_code_conformance
from service import Service, digits

import ncttt

CHECKS = [not_a_server_error, status_code_conformance, response_schema_conformance]
ROUTES = 17
PLAIN = {
    "/about",
    "/healthz",
    "/readyz",
    "/metrics",
    "/playground",
    "/playground/pause",
}  # take nothing that could be wrong
EXAMPLES = int(os.environ.get("NCTTT_EXAMPLES", "10"))  # of each route, and as many that the description forbids


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    service = Service(
        Path(tmp_path_factory.mktemp("openapi")), "--wait-ms", "0", "--most-streams", "40", "--playground"
    )
    ncttt.Client(service.url).predict(digits()[:2], "door-2")
    yield service
    service.end()


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["allowed", "forbidden"])
def test_no_request_is_answered_with_an_error_of_the_service(service, mode):
    schema = schemathesis.openapi.from_url(f"{service.url}/openapi.json")
    operations = [result.ok() for result in schema.get_all_operations()]
    assert len(operations) == ROUTES
    for operation in operations:
        if mode == GenerationMode.NEGATIVE and operation.path in PLAIN:
            continue

        @given(case=operation.as_strategy(generation_mode=mode))
        @settings(
            max_examples=EXAMPLES,
            deadline=None,
            derandomize=True,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        def answered(case):
            case.validate_response(case.call(), checks=CHECKS)

        answered()
    assert ncttt.Client(service.url).predict(digits()[:2], "door-2")["predictions"]
    counted = requests.get(f"{service.url}/metrics").text
    assert 'route="/predict",status="5' not in counted
    asked = re.findall(r'^ncttt_requests_total{route="/predict",status="\d+"} (\S+)', counted, re.MULTILINE)
    assert sum(map(float, asked)) > EXAMPLES  # they did reach the service
