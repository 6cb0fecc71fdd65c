"""Partial dependence on categories: bars, and one for rows in which the value is missing."""

import numpy as np
import pandas as pd

from spinney import plot
from spinney.ensemble import RandomForestRegressor

random = np.random.default_rng(0)
frame = pd.DataFrame(
    {
        "colour": random.choice(["red", "green", "blue", "grey", None], 500),
        "weight": random.normal(10, 2, 500),
    }
)
worth = frame["colour"].map({"red": 9, "green": 4, "blue": 6, "grey": 2}).fillna(5)
price = worth + 0.5 * frame["weight"] + random.normal(0, 1, 500)
model = RandomForestRegressor(random_state=0).fit(frame, price)

plot.partial_dependence(model, frame, "colour")
