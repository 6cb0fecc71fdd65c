"""The compiled core. Private: everything here is called through the estimators."""

from collections.abc import Callable
from typing import Any

from numpy import bool_, float32, float64, int32, int64, uint8, uint32, uint64
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

class Targets:
    def __init__(
        self,
        targets: NDArray[Any],
        n_classes: list[int],
        weights: NDArray[float64] | None,
        integral_weights: bool,
    ) -> None: ...

class GrowOptions:
    criterion: Any
    random_splits: bool
    max_depth: int
    min_samples_split: int
    min_samples_leaf: int
    min_weight_leaf: float
    max_features: int
    max_leaf_nodes: int
    min_impurity_decrease: float
    monotonic: list[int]
    coarse: bool
    narrow_thresholds: bool
    seed: int
    n_threads: int

def grow_tree(
    table: Table,
    targets: Targets,
    options: GrowOptions,
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

class QuinlanOptions:
    gain_ratio: bool
    penalise_thresholds: bool
    group_categories: bool
    missing_is_category: bool
    min_branch: float
    min_gain: float
    max_depth: int
    collapse: bool
    prune: bool
    raise_subtrees: bool
    confidence: float
    n_threads: int

class MultiwayTree:
    @staticmethod
    def from_arrays(
        n_classes: int,
        missing_is_category: bool,
        feature: NDArray[int32],
        threshold: NDArray[float64],
        child_start: NDArray[int64],
        children: NDArray[int32],
        shares: NDArray[float64],
        branch_start: NDArray[int64],
        branch_of: NDArray[int32],
        fractions: NDArray[float64],
    ) -> MultiwayTree: ...
    def predict(self, table: Table, n_threads: int) -> NDArray[float64]: ...

def grow_quinlan_tree(
    table: Table,
    targets: Targets,
    options: QuinlanOptions,
    progress: Callable[[int, int], object] | None,
) -> dict[str, Any]: ...
def quinlan_root_splits(
    table: Table, targets: Targets, options: QuinlanOptions
) -> list[tuple[bool, float, float]]: ...
def simplify_rules(
    table: Table,
    targets: Targets,
    confidence: float,
    n_threads: int,
    labels: NDArray[uint32],
    rule_start: NDArray[int64],
    feature: NDArray[int32],
    low: NDArray[float64],
    high: NDArray[float64],
    allowed_start: NDArray[int64],
    allowed: NDArray[uint8],
) -> tuple[NDArray[uint8], NDArray[float64], NDArray[float64]]: ...
def extra_errors(n: float, errors: float, confidence: float) -> float: ...

class PreparedTable:
    def __init__(
        self, table: Table, random_splits: bool, n_threads: int, bare: bool = False
    ) -> None: ...

class ForestOptions:
    tree: GrowOptions
    first_tree: int
    n_trees: int
    n_threads: int
    bootstrap: bool
    replace: bool
    n_drawn: int
    balance_classes: bool
    ccp_alpha: float
    hard_votes: bool
    out_of_bag: bool
    followed: list[int]
    keep_members: bool
    centre: list[float]
    importance: Any

class OutOfBag:
    def restore(
        self,
        sums: NDArray[float64],
        squares: NDArray[float64],
        n_trees: NDArray[uint32],
        curve: NDArray[float64],
        importances: NDArray[float64],
    ) -> None: ...
    @property
    def sums(self) -> NDArray[float64]: ...
    @property
    def squares(self) -> NDArray[float64]: ...
    @property
    def n_trees(self) -> NDArray[uint32]: ...
    @property
    def curve(self) -> NDArray[float64]: ...
    @property
    def importances(self) -> NDArray[float64]: ...

def tells_order(tree_seed: int, n_rows: int) -> NDArray[uint8]: ...
def number_children(leaf_bits: NDArray[uint8], sizes: NDArray[Any]) -> NDArray[Any]: ...
def crc32(sum: int, bytes: NDArray[uint8], n_threads: int) -> int: ...
def trim_memory() -> None: ...
def seed_of_tree(forest_seed: int, tree: int) -> int: ...
def mean_path_length(n: float) -> float: ...
def draw_bag(
    n_rows: int,
    n_drawn: int,
    replace: bool,
    weights: NDArray[float64] | None,
    forest_seed: int,
    tree: int,
) -> NDArray[int64]: ...

class Forest:
    def __init__(
        self,
        criterion: str,
        n_classes: list[int],
        n_outputs: int,
        inner_values: bool,
        n_categories: list[int],
    ) -> None: ...
    def __len__(self) -> int: ...
    def append(self, arrays: dict[str, Any]) -> None: ...
    def part(self, first: int, last: int) -> Forest: ...
    def extend(self, more: Forest) -> None: ...
    def truncate(self, n_trees: int) -> None: ...
    def grow(
        self,
        prepared: PreparedTable,
        targets: Targets,
        options: ForestOptions,
        draw_weights: NDArray[float64] | None,
        counts: NDArray[uint32] | None,
        features: NDArray[int32] | None,
        out_of_bag: OutOfBag,
        progress: Callable[[int, int], object] | None,
        seeds: NDArray[uint64] | None = None,
    ) -> None: ...
    def expand(self, tree: int) -> dict[str, Any]: ...
    def node_counts(self) -> NDArray[int64]: ...
    def sum_predictions(
        self, table: Table, hard_votes: bool, n_threads: int, out: NDArray[float64]
    ) -> None: ...
    def apply(self, table: Table, n_threads: int, out: NDArray[int64]) -> None: ...
    def path_lengths(self, table: Table, n_threads: int, out: NDArray[float64]) -> None: ...
    def importances(self, n_threads: int, out: NDArray[float64]) -> None: ...
    def moments(
        self,
        table: Table,
        centre: NDArray[float64],
        n_threads: int,
        sums: NDArray[float64],
        squares: NDArray[float64],
    ) -> None: ...
    def quantiles(
        self,
        table: Table,
        targets: NDArray[float64],
        weights: NDArray[float64] | None,
        q: NDArray[float64],
        n_threads: int,
        out: NDArray[float64],
    ) -> None: ...
    def state(self) -> dict[str, NDArray[Any]]: ...
    def restore(self, arrays: dict[str, NDArray[Any]], n_threads: int = 1) -> None: ...
    @property
    def nbytes(self) -> int: ...

class RowMatrix: ...

class ExactMatrix(RowMatrix):
    def derive(self, column: int, source: int, of_category: list[float]) -> None: ...

def exact_table(table: Table, sorted: bool, n_threads: int) -> ExactMatrix: ...

class BinnedMatrix(RowMatrix):
    def derive(self, column: int, source: int, of_category: list[float]) -> None: ...
    @property
    def n_codes(self) -> int: ...
    def write(self, piece: Table, first: int, n_threads: int) -> None: ...
    def missing(self) -> NDArray[int64]: ...
    def complete(self, missing: NDArray[int64]) -> None: ...
    def count_codes(self) -> NDArray[int64]: ...
    def set_code_counts(self, counts: NDArray[int64]) -> None: ...

def bin_table(
    table: Table, max_bins: int, n_threads: int, among: Any = None, weights: Any = None
) -> BinnedMatrix: ...
def bin_given(bins: list[tuple[bool, NDArray[Any]]], n_rows: int) -> BinnedMatrix: ...
def find_cuts(values: NDArray[Any], max_bins: int, units: Any = None) -> NDArray[float64]: ...
def weight_units(weights: NDArray[float64], largest: float, n: int) -> NDArray[uint64]: ...
def bin_categories(counts: NDArray[uint64], max_bins: int) -> NDArray[uint8]: ...
def sample_rows(n_rows: int) -> NDArray[uint64]: ...
def bin_like(table: Table, like: BinnedMatrix, n_threads: int) -> BinnedMatrix: ...
def adaboost(
    forest: Forest,
    table: Table,
    targets: Targets,
    tree: GrowOptions,
    kind: str,
    learning_rate: float,
    seeds: NDArray[uint64],
    weights: NDArray[float64],
    progress: Callable[[int, int], Any] | None,
) -> tuple[NDArray[float64], NDArray[float64], str]: ...
def add_votes(
    forest: Forest,
    table: Table,
    tree_weights: NDArray[float64],
    real: bool,
    first: int,
    last: int,
    n_threads: int,
    out: NDArray[float64],
) -> None: ...

class BoostOptions:
    groups: list[int]
    stretches: list[tuple[int, int]]
    learning_rate: float
    n_rounds: int
    first_round: int
    subsample: float
    by_gradient: bool
    levels: list[float]
    many_targets: bool
    n_threads: int
    max_leaves: int
    max_depth: int
    tree_columns: float
    level_columns: float
    node_columns: float
    interactions: list[list[int]]
    seed: int
    l2: float
    l1: float
    min_gain: float
    min_hessian: float
    min_rows: int
    monotonic: list[int]

    def __init__(self) -> None: ...
    def set_loss(self, name: str, parameter: float, n_scores: int) -> None: ...
    def set_growth(self, name: str) -> None: ...

class BoostValidation:
    def __init__(
        self,
        matrix: RowMatrix,
        rows: NDArray[uint32],
        targets: NDArray[float64] | NDArray[float32] | NDArray[uint8],
        weights: NDArray[float64] | None,
        scores: NDArray[float64],
        groups: list[int] = ...,
    ) -> None: ...

def boost(
    matrix: RowMatrix,
    rows: NDArray[uint32] | None,
    targets: NDArray[float64] | NDArray[float32] | NDArray[uint8],
    weights: NDArray[float64] | None,
    scores: NDArray[float64],
    validation: BoostValidation | None,
    options: BoostOptions,
    forest: Forest,
    own_gradients: Callable[[], tuple[NDArray[float64], NDArray[float64]]] | None,
    progress: Callable[[int, int], object] | None,
    exchange: Any = None,
    after_round: Callable[[int], object] | None = None,
) -> tuple[NDArray[float64], NDArray[float64]]: ...
def append_mean(forests: list[Forest], n_rounds: int, n_scores: int, out: Forest) -> None: ...
def add_rounds(
    forest: Forest,
    table: Table,
    n_scores: int,
    first: int,
    last: int,
    n_threads: int,
    out: NDArray[float64],
) -> None: ...

class RowScorer:
    def __init__(self, forest: Forest, baseline: list[float], n_rounds: int, link: str) -> None: ...
    def __call__(self, row: NDArray[float64]) -> NDArray[float64]: ...

def rank_derivatives(
    by_gain: bool,
    places: int,
    groups: list[int],
    targets: NDArray[float64],
    scores: NDArray[float64],
) -> tuple[Any, Any, float]: ...
def loss_derivatives(
    loss: str,
    parameter: float,
    n_scores: int,
    targets: NDArray[float64],
    scores: NDArray[float64],
) -> tuple[NDArray[float64], NDArray[float64], float]: ...

class Strings:
    def __init__(self, characters: NDArray[uint32], starts: NDArray[int64]) -> None: ...

def closer_vectors(
    metric: str,
    rows: NDArray[float64],
    pivots: NDArray[float64],
    x: NDArray[Any],
    a: NDArray[Any],
    b: NDArray[Any],
    n_threads: int,
    out: NDArray[bool_],
) -> None: ...
def closer_strings(
    metric: str,
    rows: Strings,
    pivots: Strings,
    x: NDArray[Any],
    a: NDArray[Any],
    b: NDArray[Any],
    n_threads: int,
    out: NDArray[bool_],
) -> None: ...
def string_distance(metric: str, pair: Strings) -> int: ...
def string_distances(
    metric: str, queries: Strings, rows: Strings, n_threads: int, out: NDArray[float64]
) -> None: ...
def select_nearest(
    matrix: NDArray[float64], n_threads: int, distances: NDArray[float64], columns: NDArray[int64]
) -> None: ...

class MixedRows:
    def __init__(self, numbers: NDArray[float64], codes: NDArray[int32]) -> None: ...

class MixedColumns:
    def __init__(
        self,
        number_scales: NDArray[float64],
        number_weights: NDArray[float64],
        number_misses: NDArray[bool_],
        code_weights: NDArray[float64],
        code_misses: NDArray[bool_],
    ) -> None: ...

def nearest_gower(
    columns: MixedColumns,
    queries: MixedRows,
    rows: MixedRows,
    n_threads: int,
    distances: NDArray[float64],
    indices: NDArray[int64],
) -> None: ...
def gower_distances(
    columns: MixedColumns,
    queries: MixedRows,
    rows: MixedRows,
    n_threads: int,
    out: NDArray[float64],
) -> None: ...

class KdTree:
    def __init__(
        self, points: NDArray[float64], p: float, leaf_size: int, n_threads: int
    ) -> None: ...
    def query(
        self, queries: NDArray[float64], k: int, eps: float, max_leaves: int, n_threads: int
    ) -> tuple[NDArray[float64], NDArray[int64]]: ...
    def within(
        self,
        queries: NDArray[float64],
        radii: NDArray[float64],
        sort: bool,
        n_threads: int,
    ) -> tuple[NDArray[int64], NDArray[int64], NDArray[float64]]: ...
    def count_within(
        self, queries: NDArray[float64], radii: NDArray[float64], n_threads: int
    ) -> NDArray[int64]: ...

class BallTree:
    def __init__(
        self,
        points: NDArray[float64],
        metric: str,
        p: float,
        weights: list[float],
        function: Any,
        leaf_size: int,
    ) -> None: ...
    def query(
        self, queries: NDArray[float64], k: int, n_threads: int
    ) -> tuple[NDArray[float64], NDArray[int64]]: ...
    def within(
        self,
        queries: NDArray[float64],
        radii: NDArray[float64],
        sort: bool,
        n_threads: int,
    ) -> tuple[NDArray[int64], NDArray[int64], NDArray[float64]]: ...

def centre_rows(
    points: NDArray[Any],
    centre: NDArray[float64],
    n_threads: int,
    centred: NDArray[Any],
    half_norms: NDArray[Any],
) -> float: ...

class BruteSelection:
    def __init__(self, k: int, error: NDArray[Any]) -> None: ...
    def look(
        self, products: NDArray[Any], half_norms: NDArray[Any], first: int, n_threads: int
    ) -> None: ...
    def finish(
        self, points: NDArray[Any], queries: NDArray[float64], k: int, n_threads: int
    ) -> tuple[NDArray[float64], NDArray[int64]]: ...

class LocalModel:
    def __init__(
        self,
        X: NDArray[float64],
        y: NDArray[float64],
        weights: NDArray[float64],
        kernel: str,
        degree: int,
        alpha: float,
        logit: bool,
    ) -> None: ...
    def fit(
        self,
        queries: NDArray[float64],
        starts: NDArray[int64],
        rows: NDArray[int64],
        distances: NDArray[float64],
        bandwidths: NDArray[float64],
        kernel_values: NDArray[float64] | None,
        own_rows: NDArray[int64] | None,
        leave_out: bool,
        with_gradients: bool,
        n_threads: int,
    ) -> tuple[NDArray[float64], NDArray[float64], NDArray[float64], NDArray[float64]]: ...

class Mixture:
    def __init__(
        self,
        kind: str,
        offsets: NDArray[float64],
        means: NDArray[float64],
        factors: NDArray[float64],
        shift: NDArray[float64],
    ) -> None: ...
    def sum_moments(
        self,
        X: NDArray[Any],
        weights: NDArray[float64] | None,
        labels: NDArray[int32] | None,
        shares: NDArray[float64] | None,
        n_threads: int,
    ) -> tuple[float, NDArray[float64], NDArray[float64], NDArray[float64], NDArray[float64]]: ...
    def score(
        self,
        X: NDArray[Any],
        densities: NDArray[float64] | None,
        responsibilities: NDArray[float64] | None,
        labels: NDArray[int64] | None,
        n_threads: int,
    ) -> None: ...

class Hnsw:
    def __init__(
        self,
        n_features: int,
        *,
        metric: str,
        n_links: int,
        ef_construction: int,
        has_codes: bool,
        seed: int,
    ) -> None: ...
    @staticmethod
    def from_state(
        n_features: int,
        *,
        metric: str,
        n_links: int,
        ef_construction: int,
        has_codes: bool,
        seed: int,
        vectors: NDArray[Any],
        links: NDArray[Any],
        post_slots: NDArray[Any],
        post_levels: NDArray[Any],
        post_links: NDArray[Any],
        deleted: NDArray[Any],
        code_offsets: NDArray[Any],
        code_scale: float,
        top: int,
        ground: int,
    ) -> Hnsw: ...
    def state(self) -> dict[str, Any]: ...
    def deleted(self) -> NDArray[Any]: ...
    def __len__(self) -> int: ...
    @property
    def n_deleted(self) -> int: ...
    @property
    def n_bytes(self) -> int: ...
    def reserve(self, n_vectors: int) -> None: ...
    def add(self, values: NDArray[Any], n_threads: int) -> None: ...
    def search(
        self,
        queries: NDArray[Any],
        *,
        k: int,
        ef: int,
        allowed: NDArray[Any] | None,
        exact: bool,
        n_threads: int,
        distances: NDArray[Any],
        slots: NDArray[Any],
    ) -> None: ...
    def erase(self, slots: NDArray[Any]) -> None: ...
    def reorder(self) -> NDArray[Any]: ...

def sum_moments(
    x: NDArray[Any],
    y: NDArray[float64],
    weights: NDArray[float64],
    centre: NDArray[float64],
    n_threads: int,
) -> NDArray[float64]: ...
def sum_sparse_moments(
    values: NDArray[float64],
    columns: NDArray[Any],
    starts: NDArray[Any],
    n_features: int,
    y: NDArray[float64],
    weights: NDArray[float64],
    n_threads: int,
) -> NDArray[float64]: ...
def measure_binary(
    x: NDArray[Any],
    centre: NDArray[float64],
    targets: NDArray[float64],
    weights: NDArray[float64],
    coefficients: NDArray[float64],
    second: bool,
    n_threads: int,
) -> tuple[float, NDArray[float64], NDArray[float64]]: ...
def multiply_rows(
    x: NDArray[Any],
    coefficients: NDArray[float64],
    centre: NDArray[float64],
    n_threads: int,
    out: NDArray[float64],
) -> None: ...
def multiply_sparse_rows(
    values: NDArray[float64],
    columns: NDArray[Any],
    starts: NDArray[Any],
    coefficients: NDArray[float64],
    n_threads: int,
    out: NDArray[float64],
) -> None: ...
def measure_sparse_binary(
    values: NDArray[float64],
    columns: NDArray[Any],
    starts: NDArray[Any],
    n_features: int,
    targets: NDArray[float64],
    weights: NDArray[float64],
    coefficients: NDArray[float64],
    second: bool,
    n_threads: int,
) -> tuple[float, NDArray[float64], NDArray[float64]]: ...
def measure_multinomial(
    x: NDArray[Any],
    centre: NDArray[float64],
    labels: NDArray[Any],
    weights: NDArray[float64],
    coefficients: NDArray[float64],
    second: bool,
    n_threads: int,
) -> tuple[float, NDArray[float64], NDArray[float64]]: ...
def measure_sparse_multinomial(
    values: NDArray[float64],
    columns: NDArray[Any],
    starts: NDArray[Any],
    n_features: int,
    labels: NDArray[Any],
    weights: NDArray[float64],
    coefficients: NDArray[float64],
    n_threads: int,
) -> tuple[float, NDArray[float64], NDArray[float64]]: ...
def leave_one_out(
    x: NDArray[Any],
    y: NDArray[float64],
    weights: NDArray[float64],
    centre: NDArray[float64],
    basis: NDArray[float64],
    shrinkage: NDArray[float64],
    coefficients: NDArray[float64],
    intercepts: NDArray[float64],
    base_leverage: float,
    n_threads: int,
    predictions: NDArray[float64],
) -> NDArray[float64]: ...
def descend_by_matrix(
    hessian: NDArray[float64],
    gradient: NDArray[float64],
    absolute: NDArray[float64],
    square: NDArray[float64],
    tolerance: float,
    most_sweeps: int,
    w: NDArray[float64],
) -> tuple[int, float]: ...
def run_perceptrons(
    values: NDArray[Any],
    columns: NDArray[int32] | None,
    starts: NDArray[int32] | None,
    n_rows: int,
    n_features: int,
    steps: NDArray[float64],
    planes: NDArray[float64],
    seeds: NDArray[uint32],
    variant: str,
    fit_intercept: bool,
    shuffle: bool,
    max_passes: int,
    patience: int,
    tolerance: float,
    n_threads: int,
) -> tuple[NDArray[float64], NDArray[float64], NDArray[int64], NDArray[int64], bool]: ...

class TreeExplainer:
    def __init__(self, n_categories: list[int], n_outputs: int) -> None: ...
    def append(
        self,
        left: NDArray[int64],
        right: NDArray[int64],
        feature: NDArray[int64],
        threshold: NDArray[float64],
        missing_left: NDArray[uint8],
        category_start: NDArray[int64],
        category_bits: NDArray[uint32],
        share_left: NDArray[float64],
        value: NDArray[float64],
        width: int,
        output: int,
    ) -> None: ...
    def append_forest(
        self,
        forest: Forest,
        n_trees: int,
        n_scores: int,
        one_each: bool,
        by_rows: bool,
        n_threads: int,
    ) -> None: ...
    def set_background(self, table: Table) -> None: ...
    def base_values(self) -> NDArray[float64]: ...
    def explain(
        self,
        table: Table,
        interactions: bool,
        n_threads: int,
        out: NDArray[float64],
        progress: Callable[[int, int], Any] | None,
    ) -> None: ...

def score_shuffles(
    forest: Forest,
    table: Table,
    groups: list[list[int]],
    orders: NDArray[int64],
    n_trees: int,
    n_scores: int,
    one_each: bool,
    hard_votes: bool,
    n_threads: int,
    out: NDArray[float64],
) -> None: ...
def score_settings(
    forest: Forest,
    table: Table,
    features: list[int],
    values: NDArray[float64],
    n_trees: int,
    n_scores: int,
    one_each: bool,
    hard_votes: bool,
    by_row: bool,
    n_threads: int,
    out: NDArray[float64],
) -> None: ...
