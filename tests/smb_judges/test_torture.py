"""smbtorture: every test of the gates passes, and every other test has a reason not to be run."""

from collections import Counter
from fnmatch import fnmatchcase

import pytest
from _pytest.mark import ParameterSet

from tests.smb_judges.target import Target
from tests.smb_judges.torture import PATIENCE_SECONDS, listed_tests, outcome
from tests.smb_judges.torture_tests import GATED, GATES, NOT_RUN, SAMBA_FAILS_HERE, names_in


def case(gate: str, test: str) -> ParameterSet:
    """A test that the reference server fails judges Verditer alone."""
    alone = gate == "beyond Samba" or test in SAMBA_FAILS_HERE
    return pytest.param(test, id=f"{gate}-{test}", marks=[pytest.mark.verditer] if alone else [])


CASES = [case(gate, test) for gate in GATES for test in names_in(gate)]


@pytest.mark.timeout(PATIENCE_SECONDS + 20)
@pytest.mark.parametrize("test", CASES)
def test_smbtorture_passes(target: Target, test: str) -> None:
    result, text = outcome(target, test)
    assert result == "success", text


def test_every_test_is_run_or_has_one_reason_not_to_be() -> None:
    listed = listed_tests()
    places = Counter({name: (name in GATED) + sum(fnmatchcase(name, pattern) for pattern in NOT_RUN) for name in listed})
    assert {name: count for name, count in places.items() if count != 1} == {}
    assert [name for name, count in Counter(GATED).items() if count > 1] == []
    assert sorted(set(GATED) - set(listed)) == []
    assert [pattern for pattern in NOT_RUN if not any(fnmatchcase(name, pattern) for name in listed)] == []
