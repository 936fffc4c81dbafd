"""A fitted estimator as a page: the report, and what a notebook shows of it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from polyleaf.data.binned_table import BinnedTable
from polyleaf.data.device_arrays import on_host
from polyleaf.data.inputs import FloatArray
from polyleaf.data.sources import source_kind
from polyleaf.explain.outputs import chosen_outputs
from polyleaf.explain.shap import ForestShap
from polyleaf.files.written_file import checked_target, write_atomically
from polyleaf.inspect.named_trees import NamedTrees
from polyleaf.model.fitted import FittedModel
from polyleaf.params.rules import Integer
from polyleaf.params.table import EstimatorKind
from polyleaf.report.contents import contents
from polyleaf.report.notebook import compact_form
from polyleaf.report.page import page
from polyleaf.report.subject import Subject, Wishes


class Reporting:
    """The part of the estimators that makes pages to look at."""

    _kind: ClassVar[EstimatorKind]

    if TYPE_CHECKING:  # of the estimators

        @property
        def best_score_(self) -> dict[str, dict[str, float]]: ...
        def _check_is_fitted(self) -> None: ...
        def _fitted(self) -> FittedModel: ...
        def _ready(self, X: object, n_rounds: int | None) -> tuple[Any, int, int]: ...
        def _observed(self, y: Any, sample_weight: Any, n_rows: int) -> tuple[Any, FloatArray | None]: ...
        def _shap(self, outputs: Any) -> ForestShap: ...
        def get_params(self, deep: bool = True) -> dict[str, Any]: ...

    def report(
        self,
        X: Any,
        y: Any,
        path: str | os.PathLike[str] | None = None,
        *,
        sample_weight: Any = None,
        outputs: Any = None,
        title: str | None = None,
        max_rows: int = 1000,
        max_outputs: int = 300,
        random_state: int = 0,
    ) -> str | None:
        """Write what there is to see of the model on some rows to one HTML file.

        The file asks for nothing else, from nowhere: it can be kept, sent and opened without a network. It
        has scores of each output with intervals, training curves, importances, Shapley values of features and
        outputs, one output at a time, the worst rows with their reasons, calibration of classes and labels,
        coverage of quantiles, residuals, confusion of classes, all parameters, and what was left out. The
        same model and rows give the same bytes.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_rows, n_features)
            The features, best of rows that the model was not trained on.
        y : array-like, data frame or sparse matrix
            What was observed of them, as in ``fit``; missing targets do not count.
        path : str or os.PathLike, default=None
            The file. It appears when it is complete, and replaces one of the same name. None: return the text
            of the page.
        sample_weight : array-like of shape (n_rows,) or (n_rows, n_columns of y), default=None
            Weights of rows or cells; they count in scores, calibration and confusion.
        outputs : int, str, or sequence of these, default=None
            Which outputs to report on, by number or by name; None: all.
        title : str, default=None
            The heading; None: "polyleaf report".
        max_rows : int, default=1000
            Rows to explain by Shapley values at most; others are scored all the same.
        max_outputs : int, default=300
            Outputs to report on at most; of more, those that most rows have.
        random_state : int, default=0
            Seed of the rows that are explained or drawn as points, and of the resampling behind intervals.

        Returns
        -------
        str or None
            The page, where there is no path.

        Raises
        ------
        FileNotFoundError, IsADirectoryError, ValueError
            When the path cannot be written, an output does not exist, or X and y do not fit the model; before
            any work is done.
        """
        self._check_is_fitted()
        target = None if path is None else checked_target(path, "the report")
        if title is not None and not isinstance(title, str):
            raise TypeError(f"title must be str or None; got {title!r:.80} of type {type(title).__name__}.")
        Integer(1).check("max_rows", max_rows)
        Integer(1).check("max_outputs", max_outputs)
        Integer(0, 2**32 - 1).check("random_state", random_state)
        fitted = self._fitted()
        chosen = chosen_outputs(outputs, fitted.coding.columns_of_outputs())
        if y is None:
            raise TypeError("report() needs y: what was observed of the rows of X.")
        wishes = Wishes(title or "polyleaf report", int(max_rows), int(max_outputs), int(random_state))
        text = page(contents(self._subject(X, y, sample_weight), wishes, chosen))
        if target is None:
            return text
        write_atomically(target, text.encode("utf-8"))
        return None

    def _subject(self, X: Any, y: Any, sample_weight: Any) -> Subject:
        """Return this model with rows to judge it by."""
        if source_kind(X) is not None or isinstance(X, BinnedTable):
            raise TypeError(
                "report() shows values of rows in memory: X must be an array, a data frame or a sparse "
                f"matrix; got {type(X).__name__}."
            )
        ready, rounds, threads = self._ready(X, None)
        table = on_host(ready)
        coded, weight = self._observed(on_host(y), on_host(sample_weight), table.shape[0])
        fitted = self._fitted()
        return Subject(
            kind=self._kind,
            params=self.get_params(deep=False),
            fitted=fitted,
            table=table if isinstance(table, np.ndarray) else table.tocsr(),
            raw=fitted.forest.predict_raw(table, n_rounds=rounds, n_threads=threads),
            y=coded,
            weight=weight,
            is_weighted=sample_weight is not None,
            shap=self._shap,
            threads=threads,
        )

    # --- notebooks -----------------------------------------------------------------------------------------

    def _repr_html_inner(self) -> str:
        """Return what a notebook shows: scikit-learn's diagram until the estimator is fitted."""
        if "_forest" in self.__dict__:
            return self._compact_form()
        return str(super()._repr_html_inner())  # type: ignore[misc]

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        """Return the same beside the estimator as text, as scikit-learn does."""
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        if "text/html" in bundle and "_forest" in self.__dict__:
            bundle["text/html"] = self._compact_form()
        return bundle

    def _compact_form(self) -> str:
        names = NamedTrees(self._fitted())
        return compact_form(self._kind, names, self.best_score_, self.get_params(deep=False))
