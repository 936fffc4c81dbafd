"""The progress bar writes to standard error only when asked to."""

from polyleaf.progress import Progress


def test_silent(capsys):
    with Progress(3, 0) as progress:
        assert not progress.wants_training_metric
        progress.update({"rmse": 1.0})
    assert capsys.readouterr() == ("", "")


def test_bar_shows_the_watched_metric(capsys):
    with Progress(2, 1, has_evals=True) as progress:
        assert not progress.wants_training_metric
        progress.update({"validation_0 rmse": 2.0})
        progress.update({"validation_0 rmse": 1.25})
    out, err = capsys.readouterr()
    assert out == ""
    assert "2/2" in err
    assert "validation_0 rmse=1.25" in err


def test_training_metric_is_wanted_without_evaluation_sets():
    with Progress(2, True) as progress:
        assert progress.wants_training_metric
        progress.update({})


def test_lines_every_n_rounds(capsys):
    with Progress(5, 2) as progress:
        for value in range(5):
            progress.update({"rmse": float(value)})
    err = capsys.readouterr().err
    for line in ("[2/5]  rmse=1", "[4/5]  rmse=3", "[5/5]  rmse=4"):
        assert line in err
    assert "[3/5]" not in err


def test_close_twice_is_harmless():
    progress = Progress(5, 1)
    progress.close()
    progress.close()
    progress.update({})
