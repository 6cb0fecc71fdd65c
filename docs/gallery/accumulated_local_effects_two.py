"""Accumulated local effects of two columns: what they do together, beyond what each does alone."""

import numpy as np

from spinney import plot
from spinney.ensemble import GradientBoostingRegressor

random = np.random.default_rng(0)
X = random.normal(size=(2000, 3))
y = X[:, 0] * X[:, 1] + X[:, 2] + 0.3 * random.normal(size=2000)
model = GradientBoostingRegressor(random_state=0).fit(X, y)

plot.accumulated_local_effects(model, X, (0, 1), n_intervals=12)
