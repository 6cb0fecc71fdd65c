"""Summary of a linear model: coefficients with standard errors and tests."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape

import numpy as np
from numpy.typing import NDArray
from scipy import stats

__all__ = ["Summary", "summarise"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Summary:
    """Coefficients with standard errors, tests against zero, and confidence intervals.

    Attributes
    ----------
    names : list of str
        Names of the coefficients: "(intercept)", if there is one, then the columns.
    coef, std_err : ndarray
        Coefficients and their standard errors.
    statistic, p_value : ndarray
        Coefficient divided by standard error, and the two-sided p-value of this statistic.
    lower, upper : ndarray
        Ends of the confidence intervals.
    confidence : float
        Their confidence level.
    distribution : str
        Distribution of the statistic: "t" or "z" (standard normal).
    facts : dict
        Statistics of the whole fit, such as "r2" and "n_rows".
    """

    names: list[str]
    coef: Floats
    std_err: Floats
    statistic: Floats
    p_value: Floats
    lower: Floats
    upper: Floats
    confidence: float
    distribution: str
    facts: dict[str, float] = field(default_factory=dict)

    def rows(self) -> list[tuple[str, ...]]:
        """Return the cells of the table as text, with a header."""
        level = f"{100 * self.confidence:g}"
        head = ("", "coef", "std err", self.distribution, "p", f"{level} % from", "to")
        columns = (self.coef, self.std_err, self.statistic, self.p_value, self.lower, self.upper)
        lines = [
            (name, *(f"{value:.4g}" for value in values))
            for name, *values in zip(self.names, *columns, strict=True)
        ]
        return [head, *lines]

    def __str__(self) -> str:
        rows = self.rows()
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        lines = [
            "  ".join(
                cell.ljust(width) if i == 0 else cell.rjust(width)
                for i, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in rows
        ]
        facts = ", ".join(f"{name} {value:.6g}" for name, value in self.facts.items())
        return "\n".join([*lines, facts]) if facts else "\n".join(lines)

    def _repr_html_(self) -> str:
        head, *lines = self.rows()
        cells = "".join(f"<th>{escape(cell)}</th>" for cell in head)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in line) + "</tr>"
            for line in lines
        )
        facts = ", ".join(f"{escape(name)} {value:.6g}" for name, value in self.facts.items())
        return f"<table><tr>{cells}</tr>{body}</table><p>{facts}</p>"


def summarise(
    names: list[str],
    coef: Floats,
    std_err: Floats,
    *,
    confidence: float,
    degrees: float | None,
    facts: dict[str, float],
) -> Summary:
    """Return the summary; `degrees` of freedom None is the normal distribution."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence: expected a number between 0 and 1, got {confidence}")
    distribution = stats.norm() if degrees is None else stats.t(degrees)
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = coef / std_err
    reach = distribution.ppf(0.5 + confidence / 2) * std_err
    return Summary(
        names=names,
        coef=coef,
        std_err=std_err,
        statistic=statistic,
        p_value=2 * distribution.sf(np.abs(statistic)),
        lower=coef - reach,
        upper=coef + reach,
        confidence=confidence,
        distribution="z" if degrees is None else "t",
        facts=facts,
    )
