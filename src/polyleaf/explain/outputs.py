"""Which outputs somebody asks for, by number or by name."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from polyleaf.params.wording import shown, some_of


def chosen_outputs(outputs: Any, names: Sequence[str]) -> npt.NDArray[np.intp]:
    """Return the numbers of the outputs asked for, in that order.

    Parameters
    ----------
    outputs : None, int, str, or sequence of these
        Numbers or names; None: all.
    names : sequence of str
        What the outputs are called.

    Raises
    ------
    TypeError, ValueError
        Something is no output, or asked for twice, or there is none.
    """
    if outputs is None:
        return np.arange(len(names), dtype=np.intp)
    wanted = [outputs] if isinstance(outputs, str | numbers.Number) else outputs
    if not isinstance(wanted, Iterable):
        raise TypeError(f"outputs must be None, or numbers or names of outputs; got {shown(outputs):.80}.")
    places = {name: number for number, name in enumerate(names)}
    found = [_number_of(output, places) for output in wanted]
    if not found:
        raise ValueError("outputs is empty; leave it out for all outputs.")
    if len(set(found)) < len(found):
        twice = sorted({names[number] for number in found if found.count(number) > 1})
        raise ValueError(f"outputs asks twice for {some_of(twice)}.")
    return np.array(found, dtype=np.intp)


def _number_of(output: Any, places: dict[str, int]) -> int:
    n_outputs = len(places)
    if isinstance(output, str):
        if output not in places:
            raise ValueError(
                f"outputs: there is no output {output!r:.80}; there are {some_of(list(places))}."
            )
        return places[output]
    if isinstance(output, bool | np.bool_) or not isinstance(output, numbers.Integral):
        raise TypeError(f"outputs must be numbers or names of outputs; got {shown(output):.80}.")
    number = int(output)
    if not 0 <= number < n_outputs:
        raise ValueError(f"outputs: there is no output {number}; the model has {n_outputs}, counted from 0.")
    return number
