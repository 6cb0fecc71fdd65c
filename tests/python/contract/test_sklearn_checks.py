"""scikit-learn's checks of estimators."""

from __future__ import annotations

import pytest
from sklearn.base import BaseEstimator

from support.estimator_checks import run_estimator_checks
from support.estimator_variants import VARIANTS
from support.registry import ENTRIES, Entry

OWN = [entry for entry in ENTRIES if entry.is_own]
OWN_VARIANTS = [pytest.param(entry, marks=pytest.mark.long) for entry in VARIANTS if entry.is_own]


@pytest.mark.parametrize("entry", OWN + OWN_VARIANTS, ids=lambda entry: entry.name)
def test_estimator_checks(entry: Entry) -> None:
    run_estimator_checks(entry.create(), entry.failed_checks)


def test_failed_check_is_reported() -> None:
    class NeverFitted(BaseEstimator):
        def fit(self, X, y=None):
            return None

    with pytest.raises(AssertionError):
        run_estimator_checks(NeverFitted(), {})
