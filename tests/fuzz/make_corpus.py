"""Write the initial inputs of the fuzzers: forests of golden files, and indexes."""

from __future__ import annotations

import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np

import spinney
from spinney.neighbors import HNSW

FOLDER = Path(__file__).parent
CRITERIA = ("gini", "entropy", "misclassification", "squared_error", "poisson", "absolute_error")
INDEX_ARRAYS = (
    "vectors",
    "links",
    "post_slots",
    "post_levels",
    "post_links",
    "deleted",
    "code_offsets",
)
MAX_BYTES = 4000


def forests(model: Any) -> list[Any]:
    """Return the forests in a model."""
    stores = [value for value in vars(model).values() if type(value).__name__ == "ForestStore"]
    return [store for store in stores if len(store.shape[4]) <= 4]


def input_of(store: Any, rows: int) -> bytes:
    """Return a forest in the fuzzer's input format."""
    criterion, n_classes, n_outputs, inner_values, n_categories = store.shape
    head = [CRITERIA.index(criterion), n_outputs, int(inner_values), len(n_classes), *n_classes]
    head += [len(n_categories) - 1, *n_categories, rows]
    arrays = store.core.state().values()
    return bytes(head) + b"".join(struct.pack("<H", len(a)) + a.tobytes() for a in arrays)


def input_of_index(metric: str, codes: str | None) -> bytes:
    """Return a small index in the fuzzer's input format."""
    rows = np.random.default_rng(0).normal(size=(24, 3))
    index = HNSW(metric=metric, codes=codes, M=3, ef_construction=8, random_state=0).fit(rows)
    state = index._index.state()
    head = [("euclidean", "cosine", "inner_product").index(metric), 1, 7, codes is not None, 2, 0]
    arrays = [state[name] for name in INDEX_ARRAYS]
    arrays += [np.array([state["code_scale"]], dtype=np.float64)]
    arrays += [np.array([state["top"], state["ground"]], dtype=np.uint32)]
    return bytes(head) + b"".join(struct.pack("<H", len(a)) + a.tobytes() for a in arrays)


def main() -> None:
    """Write a file for each small forest, and for some indexes."""
    folder = FOLDER / "corpus" / "hnsw_state"
    folder.mkdir(parents=True, exist_ok=True)
    for metric, codes in (("euclidean", None), ("cosine", "uint8"), ("inner_product", None)):
        (folder / metric).write_bytes(input_of_index(metric, codes))
    folder = FOLDER / "corpus" / "forest_state"
    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted((FOLDER.parent / "golden").glob("v*/*.spinney")):
        for store in forests(spinney.load(path)):
            for rows in (0, 1):
                data = input_of(store, rows)
                if len(data) <= MAX_BYTES:
                    (folder / f"{path.stem}-{rows}").write_bytes(data)


if __name__ == "__main__":
    sys.exit(main())
