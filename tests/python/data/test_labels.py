"""Codes of labels, compared with np.unique."""

import hypothesis.extra.numpy as hnp
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spinney.data.labels import encode_labels

LABELS = st.sampled_from(["bool", "int8", "uint8", "int64", "uint64", "float64", "<U2"])


@given(
    LABELS.flatmap(
        lambda kind: hnp.arrays(
            kind,
            st.integers(1, 30),
            elements=(
                st.integers(2**64 - 40, 2**64 - 1) | st.integers(0, 50)
                if kind == "uint64"
                else st.integers(-(2**63), -(2**63) + 20) | st.integers(-5, 20)
                if kind == "int64"
                else None
            ),
        )
    )
)
def test_encoded_labels_equal_np_unique(y):
    classes, codes = encode_labels(y)
    expected, expected_codes = np.unique(y, return_inverse=True)
    np.testing.assert_array_equal(classes, expected)
    assert classes.dtype == expected.dtype
    np.testing.assert_array_equal(codes, expected_codes)
