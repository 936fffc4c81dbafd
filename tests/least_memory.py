"""How much free device memory it takes for histograms to get their share."""

from __future__ import annotations

from polyleaf.gpu.memory import Shape, plan_histograms


def least_memory(shape: Shape, histogram_bytes: int, *, with_data: bool = False) -> int:
    """Return the least free memory with which a plan keeps this much of histograms."""

    def is_enough(free: int) -> bool:
        try:
            return plan_histograms(shape, free, with_data=with_data).n_bytes >= histogram_bytes
        except MemoryError:
            return False

    too_little, enough = 0, 2**60
    assert is_enough(enough)
    while enough - too_little > 1:
        middle = (too_little + enough) // 2
        too_little, enough = (too_little, middle) if is_enough(middle) else (middle, enough)
    return enough
