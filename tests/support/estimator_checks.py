"""scikit-learn's estimator checks."""

import unittest
import warnings

from sklearn.base import is_classifier
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import estimator_checks_generator

from spinney.data.sklearn_versions import SKLEARN_VERSION
from support.registry import WEIGHT_CHECKS

FEWEST_CHECKS = 20


def run_estimator_checks(estimator, excluded=()):
    """Run all of scikit-learn's checks except those in `excluded`; a check may skip itself."""
    excluded = {*excluded, *_wrong_checks(estimator)}
    skipped = set()
    ran = set()
    for instance, check in estimator_checks_generator(estimator, legacy=True):
        name = getattr(check, "func", check).__name__
        if name in excluded:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                check(instance)
                ran.add(name)
            except unittest.SkipTest:
                skipped.add(name)
    # The first needs an environment variable, the second a decision function.
    without = "check_classifiers_multilabel_output_format_decision_function"
    assert skipped <= {"check_array_api_input", without}
    assert len(ran) > FEWEST_CHECKS


def _wrong_checks(estimator):
    """Return the checks that have an error in this version of scikit-learn."""
    if SKLEARN_VERSION >= (1, 7) or not is_classifier(estimator):
        return set()
    if get_tags(estimator).classifier_tags.multi_class:
        return set()
    # Weighted and repeated rows have different targets if there are two classes.
    return set(WEIGHT_CHECKS)
