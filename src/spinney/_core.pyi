"""The compiled core. Private: everything here is called through the estimators."""

from collections.abc import Callable
from typing import Any

from numpy import float64, int64, uint8, uint32
from numpy.typing import NDArray

def get_num_threads() -> int: ...
def set_num_threads(n_threads: int) -> None: ...
def available_cpus() -> int: ...

class Table:
    @staticmethod
    def from_matrix(matrix: NDArray[Any], known_finite: bool = True) -> Table: ...
    @staticmethod
    def from_columns(columns: list[NDArray[Any]], n_categories: list[int]) -> Table: ...
    @staticmethod
    def from_csc(
        data: NDArray[Any], rows: NDArray[Any], starts: NDArray[Any], n_rows: int
    ) -> Table: ...
    @property
    def n_rows(self) -> int: ...
    @property
    def n_features(self) -> int: ...

def grow_tree(
    table: Table,
    criterion: str,
    labels: NDArray[uint32],
    n_classes: list[int],
    values: NDArray[float64],
    weights: NDArray[float64] | None,
    integral_weights: bool,
    n_outputs: int,
    random_splits: bool,
    max_depth: int,
    min_samples_split: int,
    min_samples_leaf: int,
    min_weight_leaf: float,
    max_features: int,
    max_leaf_nodes: int,
    min_impurity_decrease: float,
    monotonic: list[int],
    seed: int,
    n_threads: int,
    progress: Callable[[int, int], object] | None,
) -> dict[str, Any]: ...
def weakest_links(
    children_left: NDArray[int64], children_right: NDArray[int64], risk: NDArray[float64]
) -> tuple[NDArray[float64], NDArray[float64], NDArray[float64]]: ...

class Predictor:
    def __init__(
        self,
        children_left: NDArray[int64],
        children_right: NDArray[int64],
        feature: NDArray[int64],
        threshold: NDArray[float64],
        missing_go_to_left: NDArray[uint8],
        category_start: NDArray[int64],
        category_bits: NDArray[uint32],
    ) -> None: ...
    def apply(self, table: Table, n_threads: int, out: NDArray[int64]) -> None: ...
    def predict(
        self,
        table: Table,
        n_threads: int,
        values: NDArray[float64],
        width: int,
        out: NDArray[float64],
    ) -> None: ...
    def predict_labels(
        self, table: Table, n_threads: int, labels: NDArray[int64], out: NDArray[int64]
    ) -> None: ...
    def decision_path(
        self, table: Table, n_threads: int
    ) -> tuple[NDArray[int64], NDArray[int64]]: ...
