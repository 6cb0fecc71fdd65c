"""Ranking on mq2008 against LightGBM: NDCG over five folds.

    python benchmarks/ranking.py [--data FOLDER]

Each fold is ranked by models of the other four. NDCG has gains of 2**relevance - 1; groups without
a relevant row do not count. Next to the mean stands the difference to LightGBM with two standard
errors over the groups. FOLDER holds mq2008.parquet.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from sklearn.metrics import ndcg_score

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
THREADS = 2


def learners():
    from lightgbm import LGBMRanker

    from spinney.ensemble import GradientBoostingRanker

    yield "lightgbm", lambda: LGBMRanker(n_jobs=THREADS, verbose=-1)
    yield "spinney", lambda: GradientBoostingRanker(random_state=0, n_jobs=THREADS)
    yield "spinney, 100 trees", lambda: GradientBoostingRanker(n_estimators=100, n_jobs=THREADS)
    yield (
        "spinney, 100 trees, pairwise",
        lambda: GradientBoostingRanker(n_estimators=100, loss="pairwise", n_jobs=THREADS),
    )


def scores_of_groups(relevance, predicted, group, k):
    """NDCG of each group that has a relevant row."""
    out = []
    for one in np.unique(group):
        rows = group == one
        if rows.sum() > 1 and relevance[rows].max() > 0:
            out.append(ndcg_score([2.0 ** relevance[rows] - 1], [predicted[rows]], k=k))
    return np.array(out)


def main():
    import lightgbm
    import pandas as pd

    import spinney

    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, default=DATA)
    frame = pd.read_parquet(parser.parse_args().data / "mq2008.parquet")
    columns = [c for c in frame if c not in ("target", "qid", "fold")]
    found: dict = {}
    seconds: dict = {}
    for fold in sorted(frame["fold"].unique()):
        fit, rest = frame[frame["fold"] != fold], frame[frame["fold"] == fold]
        sizes = fit.groupby("qid", sort=False).size().to_numpy()
        for name, make in learners():
            model = make()
            start = time.perf_counter()
            model.fit(fit[columns].to_numpy(float), fit["target"].to_numpy(float), group=sizes)
            seconds[name] = seconds.get(name, 0.0) + time.perf_counter() - start
            predicted = model.predict(rest[columns].to_numpy(float))
            for k in (None, 10):
                groups = scores_of_groups(
                    rest["target"].to_numpy(), predicted, rest["qid"].to_numpy(), k
                )
                found.setdefault((name, k), []).append(groups)
    print(f"spinney {spinney.__version__}, lightgbm {lightgbm.__version__}; {THREADS} threads")
    for name in seconds:
        parts = []
        for k in (None, 10):
            ours = np.concatenate(found[name, k])
            apart = ours - np.concatenate(found["lightgbm", k])
            error = 2 * apart.std() / np.sqrt(len(apart))
            label = "NDCG" if k is None else f"NDCG@{k}"
            parts.append(f"{label} {ours.mean():.4f}  {apart.mean():+.4f} ± {error:.4f}")
        print(f"{name:30s} {'   '.join(parts)}   {seconds[name]:.2f} s")


if __name__ == "__main__":
    main()
