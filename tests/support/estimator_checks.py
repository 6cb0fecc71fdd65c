"""scikit-learn's checks of an estimator, all of them."""

import unittest
import warnings

from sklearn.utils.estimator_checks import estimator_checks_generator


def run_estimator_checks(estimator, left_out=(), more_than=20):
    """Run every check but those left out by name; one that skips itself must not end the rest.

    An estimator that cannot predict has fewer checks than `more_than` expects.
    """
    skipped = set()
    ran = set()
    for instance, check in estimator_checks_generator(estimator, legacy=True):
        name = getattr(check, "func", check).__name__
        if name in left_out:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                check(instance)
                ran.add(name)
            except unittest.SkipTest:
                skipped.add(name)
    # The first unless an environment variable is set, the second where there is no such method.
    without = "check_classifiers_multilabel_output_format_decision_function"
    assert skipped <= {"check_array_api_input", without}
    assert len(ran) > more_than
