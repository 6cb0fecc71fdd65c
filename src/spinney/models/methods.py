"""Methods of all Spinney estimators: save, load, describe and compact."""

from __future__ import annotations

import os
from typing import Any, Literal, Self

__all__ = ["ModelMethods", "require_fitted"]


# Version of the attributes that estimators store in model files and pickles. It increases when the
# name or the meaning of an attribute changes; `_upgraded_state` of the class converts older states.
_STATE_VERSION = 2
_VERSION_KEY = "_state_version"


def require_fitted(estimator: Any) -> None:
    """Raise a NotFittedError unless an estimator is fitted.

    Where estimators define ``__sklearn_is_fitted__``, this takes a small part of the time of
    scikit-learn's `check_is_fitted`, which counts for predictions of single rows.
    """
    is_fitted = getattr(estimator, "__sklearn_is_fitted__", None)
    if is_fitted is None or not is_fitted():
        # Imported here for start-up time.
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(estimator)


class ModelMethods:
    """Mixin with the methods of all Spinney estimators."""

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), _VERSION_KEY: _STATE_VERSION}  # type: ignore[misc,dict-item]

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        version = state.pop(_VERSION_KEY, 1)
        if type(version) is not int or not 1 <= version <= _STATE_VERSION:
            raise ValueError(
                f"{type(self).__name__}: expected a state of version 1 to {_STATE_VERSION}, got "
                f"{version!r}; a later version of Spinney wrote this model"
            )
        if version == 1:
            state = type(self)._upgraded_state(state)
        super().__setstate__(state)  # type: ignore[misc]

    @classmethod
    def _upgraded_state(cls, state: dict[str, Any]) -> dict[str, Any]:
        """Return the present attributes for the attributes of version 1."""
        return state

    def fitted_model(self) -> Any:
        """Return the fitted model as an immutable value, without the estimator's methods.

        Returns
        -------
        model
            A dataclass of `spinney.models`, such as `BoostedTrees`.
        """
        require_fitted(self)
        if "_model" not in vars(self):
            raise TypeError(f"{type(self).__name__} has no Spinney model")
        return vars(self)["_model"]

    def replace_model(self, model: Any) -> None:
        """Replace the fitted model by an equivalent one, such as a compact one."""
        vars(self)["_model"] = model

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the model to a file, as `spinney.save` does.

        Parameters
        ----------
        path : str or path
            The file; an existing file is replaced after the new one is complete.
        """
        # Imported here because `spinney.model_file` is a higher layer.
        from spinney.model_file.files import save

        save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, mmap: bool | Literal["auto"] = "auto") -> Self:
        """Load a model of this class from a file, as `spinney.load` does.

        Parameters
        ----------
        path : str or path
            The file.
        mmap : bool or "auto", default="auto"
            Whether to memory-map large arrays instead of reading them; see `spinney.load`.

        Returns
        -------
        estimator
            The model.

        Raises
        ------
        ValueError
            The file contains a model of another class.
        """
        # Imported here because `spinney.model_file` is a higher layer.
        from spinney.model_file.allowed_classes import class_by_name
        from spinney.model_file.files import load, read_about

        path = os.fsdecode(path)
        name = str(read_about(path)["class"])
        try:
            kind = class_by_name(name)
        except ValueError as error:
            raise ValueError(f"{path}: damaged ({error})") from error
        if not issubclass(kind, cls):
            raise ValueError(f"{path}: expected a {cls.__name__}, got a {name}")
        model = load(path, mmap=mmap)
        if not isinstance(model, cls):
            raise ValueError(f"{path}: expected a {cls.__name__}, got a {type(model).__name__}")
        return model

    def describe(self) -> dict[str, Any]:
        """Return a summary of the model, as `spinney.describe` does for a file.

        Returns
        -------
        dict
            ``class``, ``parameters`` (as strings), ``changed`` (names of parameters that differ
            from the defaults), ``n_features``, ``features``, ``classes``, ``versions`` and
            ``compaction``.
        """
        # Imported here because `spinney.model_file` is a higher layer.
        from spinney.model_file.about import about_model

        about = about_model(self, None)
        return {name: about[name] for name in about if name not in ("training", "written")}

    def compact(self, bits: Literal[8, 16] | None = None) -> Self:
        """Return a copy whose forest takes less space in files.

        Parameters
        ----------
        bits : {8, 16} or None, default=None
            Bits of a leaf value. Regression values are rounded to 2**bits evenly spaced values for
            each tree. Class fractions are rounded to multiples of 1 / (2**bits - 1), and leaves
            with equal fractions share one copy. None changes no prediction: integers use the
            narrowest type, and children are derived from the order of nodes.

        Returns
        -------
        estimator
            The copy. Its ``compaction_`` is a dict of: ``leaf_change``, the largest change of a
            leaf value; ``prediction_change``, the largest possible change of a prediction (for
            boosters, of the raw score), None for votes; ``relative_change``, the largest possible
            relative change of a prediction, for boosters with the losses poisson, gamma and
            tweedie, else None; ``bytes_before`` and ``bytes_after``, the size of the forest in a
            file.

        Raises
        ------
        TypeError
            The model has no forest, or is not fitted.

        Notes
        -----
        Compact forests are unpacked when they are loaded, so each process has its own copy.
        """
        # Imported here for start-up time.
        from sklearn.utils.validation import check_is_fitted

        from spinney.models.compaction import compact_model

        check_is_fitted(self)
        if not hasattr(vars(self).get("_model"), "store"):
            raise TypeError(
                f"{type(self).__name__} cannot be made compact: it has no Spinney forest"
            )
        model: Self = compact_model(self, bits)
        return model

    @property
    def compaction_(self) -> dict[str, Any]:
        """Effects of `compact`; available only for compact models."""
        compaction = getattr(getattr(vars(self).get("_model"), "store", None), "compaction", None)
        if compaction is None:
            raise AttributeError(
                f"{type(self).__name__} has no compaction_: it was not created by compact()"
            )
        return dict(compaction)
