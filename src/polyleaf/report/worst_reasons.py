"""The rows that a model is most wrong about, and why it predicts them so."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyleaf.report.explained_rows import reasons, shap_blocks, shap_of
from polyleaf.report.judged import Judged
from polyleaf.report.outputs import ObservedOutputs, Output
from polyleaf.report.subject import Subject


def worst_with_reasons(
    subject: Subject, outputs: ObservedOutputs, judged: Judged, kept: list[Output]
) -> list[dict[str, Any]]:
    """Return the rows that are worst over all outputs, and why they are predicted so."""
    numbers = {output.place: number for number, output in enumerate(kept)}
    asked: list[tuple[dict[str, Any], int, int | None]] = []
    for row, place, loss in judged.worst.overall():
        output = outputs.all[place]
        found: dict[str, Any] = {"row": row, "loss": loss}
        pair = judged.taken_for(output, row)
        if pair is not None and all(one.place in numbers for one in pair):
            said, true = pair
            found |= {"said": numbers[said.place], "true": numbers[true.place]}
            found["p"] = [float(outputs.prediction[row, one.source]) for one in pair]
            asked.append((found, said.place, true.place))
        else:
            found |= {"output": numbers[place], "values": judged.shown(output, row)}
            asked.append((found, place, None))
    if not asked:
        return []
    parts = np.zeros((len(asked), subject.fitted.forest.n_features))
    rows = np.unique([found["row"] for found, _, _ in asked])
    needed = np.unique([one for _, a, b in asked for one in (a, b) if one is not None])
    for block in shap_blocks(subject, len(needed), len(rows)):
        values, _ = shap_of(subject, needed[block.start : block.stop], rows)
        for number, (found, a, b) in enumerate(asked):
            for one, sign in ((a, 1.0), (b, -1.0)):
                where = None if one is None else int(np.searchsorted(needed, one))
                if where is not None and where in block:
                    row = np.searchsorted(rows, found["row"])
                    parts[number] += sign * values[row, :, where - block.start]
    for (found, _, _), part in zip(asked, parts, strict=True):
        found["reasons"] = reasons(subject, found["row"], part)
    return [found for found, _, _ in asked]
