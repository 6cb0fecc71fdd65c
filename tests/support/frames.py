"""Tables of every type that Spinney reads, and an estimator to read them with."""

from __future__ import annotations

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import BaseEstimator

from spinney.data.table import fit_table, read_table

BIG = 2**53  # float64 represents all integers up to this one


class Model(BaseEstimator):
    """An estimator that stores the schema of a table."""


def fit(X, **options):
    """Return the estimator, the table and the schema of X."""
    model = Model()
    table, schema = fit_table(model, X, **options)
    assert model.n_features_in_ == schema.n_features == table.n_features
    representations = [
        table.matrix is not None,
        table.columns is not None,
        table.sparse is not None,
    ]
    assert sum(representations) == 1
    return model, table, schema


def refit(X, Z, **options):
    """Return the table of Z, read with the schema of X."""
    model, _, schema = fit(X, **options)
    return read_table(model, Z, schema)


def by_numpy_pandas(data):
    return pd.DataFrame(data)


def by_nullable_pandas(data):
    return pd.DataFrame(data).convert_dtypes()


def by_arrow_pandas(data):
    return pd.DataFrame(data).convert_dtypes(dtype_backend="pyarrow")


def by_object_pandas(data):
    return pd.DataFrame(data).astype(object)


def by_polars(data):
    return pl.DataFrame(data)


def by_arrow(data):
    return pa.table(data)


def by_record_batch(data):
    return pa.RecordBatch.from_pydict(data)


FRAMES = [
    by_numpy_pandas,
    by_nullable_pandas,
    by_arrow_pandas,
    by_object_pandas,
    by_polars,
    by_arrow,
    by_record_batch,
]
any_frame = pytest.mark.parametrize("frame", FRAMES)
