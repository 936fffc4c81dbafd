"""Which classes and labels are predicted, by their probabilities."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from polyleaf.data.inputs import Mask
from polyleaf.report.outputs import ObservedOutputs, Output, OutputRows


class Decisions:
    """The likeliest class of each row, and the labels that are likelier than not.

    Parameters
    ----------
    outputs : ObservedOutputs
        Of the model.
    """

    def __init__(self, outputs: ObservedOutputs) -> None:
        self._codes: dict[int, npt.NDArray[np.intp]] = {}
        for number, group in enumerate(outputs.groups):
            own = outputs.prediction[:, group.outputs]
            if group.coded.coding.kind == "binary":
                self._codes[number] = (own[:, 0] > 0.5).astype(np.intp)
            elif group.coded.coding.kind == "multiclass":
                self._codes[number] = own.argmax(axis=1)

    def codes(self, group: int) -> npt.NDArray[np.intp]:
        """Return the code of the class that is predicted of each row, for a group of classes."""
        return self._codes[group]

    def of_output(self, output: Output, observed: OutputRows) -> Mask:
        """Return of which of its rows a class or label is predicted; of numbers none."""
        if output.kind == "class":
            own = 1 if output.code is None else output.code  # of two classes, the output is the second
            return np.asarray(self._codes[output.group][observed.rows] == own)
        return np.asarray((observed.prediction > 0.5) & (output.kind == "label"))
