"""What every estimator of Spinney's can do with itself: write, read, describe, make compact."""

from __future__ import annotations

import os
from typing import Any, Literal, Self

__all__ = ["ModelMethods"]


class ModelMethods:
    """Methods of all estimators; the first of their bases that are no learners."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file, as `spinney.save` does.

        Parameters
        ----------
        path : str or path
            The file; an existing one is replaced when all is written.
        """
        from spinney.model_file.files import save

        save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, mmap: bool | Literal["auto"] = "auto") -> Self:
        """Read a model of this class from a file, as `spinney.load` does.

        Parameters
        ----------
        path : str or path
            The file.
        mmap : bool or "auto", default="auto"
            Whether large arrays stay in the file; see `spinney.load`.

        Returns
        -------
        estimator
            The model. A file with a model of another class is a ValueError.
        """
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
        """Say what the model is, as `spinney.describe` does of a file.

        Returns
        -------
        dict
            ``class``, ``parameters`` (as texts), ``changed`` (names of those that are not the
            defaults), ``n_features``, ``features``, ``classes``, ``versions`` and ``compaction``.
        """
        from spinney.model_file.about import about_model

        about = about_model(self, None)
        return {name: about[name] for name in about if name not in ("training", "written")}

    def compact(self, bits: Literal[8, 16] | None = None) -> Self:
        """Return a copy whose forest takes less room in files, with its leaf values in fewer bits.

        Parameters
        ----------
        bits : {8, 16} or None, default=None
            Bits of a leaf's values: a number is moved to the nearest of 2**bits that are evenly
            spaced in its tree, fractions of classes are rounded to as many parts and shared by
            leaves that are alike. None changes no prediction: whole numbers take the narrowest
            type, and children follow from the order of nodes.

        Returns
        -------
        estimator
            The copy. Its ``compaction_`` says what was lost: ``leaf_change``, the largest change of
            a leaf's value; ``prediction_change``, more than which no prediction (of boosters:
            raw score) changes, None where votes are counted; ``relative_change``, by which share of
            itself a prediction changes at most that is the exponential of a score (of boosters with
            the losses poisson, gamma and tweedie; else None); ``bytes_before`` and ``bytes_after``
            of the forest in a file.

        Raises
        ------
        TypeError
            The model has no forest, or is not fitted.

        Notes
        -----
        Files of compact forests are unpacked when they are loaded: each process has a copy.
        """
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self)
        if "_store" not in vars(self):
            raise TypeError(
                f"{type(self).__name__} cannot be made compact: it has no forest of Spinney's"
            )
        from spinney.models.compaction import compacted

        model: Self = compacted(self, bits)
        return model

    @property
    def compaction_(self) -> dict[str, Any]:
        """What `compact` changed; only compact models have it."""
        compaction = getattr(vars(self).get("_store"), "compaction", None)
        if compaction is None:
            raise AttributeError(f"{type(self).__name__} was not made compact: no compaction_")
        return dict(compaction)
