"""Where the texts of a drawn figure stand."""

from __future__ import annotations

from typing import Any


def boxes_of(texts: Any) -> list[Any]:
    """Where texts stand in the drawn figure; the empty ones nowhere."""
    texts = [text for text in texts if text.get_text() and text.get_visible()]
    if texts:
        texts[0].get_figure(root=True).canvas.draw()
    return [text.get_window_extent() for text in texts]


def assert_no_overlap(texts: Any) -> None:
    boxes = boxes_of(texts)
    assert boxes
    for number, one in enumerate(boxes):
        for other in boxes[number + 1 :]:
            apart = one.x1 <= other.x0 or other.x1 <= one.x0 or one.y1 <= other.y0 or other.y1 <= one.y0
            assert apart, (one, other)


def assert_inside(axes: Any, texts: Any) -> None:
    """Assert that no text is cut by the edge of the figure."""
    figure = axes.get_figure(root=True)
    for box in boxes_of(texts):
        assert min(box.x0, box.y0) >= 0, box
        assert box.x1 <= figure.bbox.x1, box
        assert box.y1 <= figure.bbox.y1, box


def names_at(axes: Any, side: str) -> list[str]:
    return [text.get_text() for text in getattr(axes, f"get_{side}ticklabels")()]
