"""The summary of a comparison in a few sentences."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from spinney.comparison.comparison import Comparison, ModelResult
from spinney.report.page.numbers import MeasureFormat
from spinney.report.page.words import model_name

__all__ = ["best_of", "summary_text"]

MOST_NAMES = 4  # tied models in the sentence; others are only counted


def best_of(comparison: Comparison) -> ModelResult | None:
    """Return the first model that was measured."""
    return next((result for result in comparison.results if result.estimate), None)


def summary_text(comparison: Comparison, measure: MeasureFormat) -> Markup:
    """Return sentences on the best model, ties, a simpler model and the baseline."""
    best = best_of(comparison)
    if best is None or best.estimate is None:
        return Markup("No model could be measured; the table below has the reasons.")
    sentences = [
        Markup("{} is best: {} {}.").format(
            _name(best.name), measure.name, measure.estimate(best.estimate)
        )
    ]
    others = [result for result in comparison.results if result.estimate and result is not best]
    tied = [result for result in others if result.tied]
    if tied:
        text = "{} is not significantly different from it."
        if len(tied) > 1:
            text = "{} are not significantly different from it."
        sentences.append(Markup(text).format(_names(tied)))
    elif others and all(result.p_value is not None for result in others):
        sentences.append(Markup("It is significantly better than every other model (p ≤ 0.05)."))
    simpler = getattr(comparison, "simpler", None)
    if simpler and simpler != best.name:
        sentences.append(
            Markup("{} is simpler and within one standard error.").format(_name(simpler))
        )
    sentences.append(_baseline_sentence(others, best, measure))
    return Markup(" ").join(sentence for sentence in sentences if sentence)


def _baseline_sentence(
    others: Sequence[ModelResult], best: ModelResult, measure: MeasureFormat
) -> Markup:
    if best.name == "baseline":
        return Markup("This model uses no column: no other model is better.")
    baseline = next((result for result in others if result.name == "baseline"), None)
    if baseline is None or baseline.estimate is None:
        return Markup("")
    if baseline.tied:
        return Markup("{} uses no column and is not significantly worse.").format(_name("baseline"))
    number = f"{measure.number(baseline.estimate.mean)}{measure.unit}"
    return Markup("Without any column, the {} is {}.").format(measure.name, number)


def _name(name: str) -> Markup:
    return Markup("<b>{}</b>").format(model_name(name))


def _names(results: Sequence[ModelResult]) -> Markup:
    named = [_name(result.name) for result in results[:MOST_NAMES]]
    if len(results) > MOST_NAMES:
        named = [*named[: MOST_NAMES - 1], Markup(f"{len(results) - MOST_NAMES + 1} more models")]
    if len(named) == 1:
        return named[0]
    return Markup(", ").join(named[:-1]) + Markup(" and ") + named[-1]
