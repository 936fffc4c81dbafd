"""How a command fails: exit codes, and errors as one line that names the file."""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

from polyleaf.gpu.runtime import GpuError

FAILED, WRONG_USAGE, INTERRUPTED = 1, 2, 130
# What says what is wrong with a file, a column or a machine; others are mistakes of the program.
_TELLING = (OSError, ValueError, TypeError, ImportError, MemoryError, GpuError)
# What errors call as Python does, and the options that say it.
_OPTIONS = {"in categorical_features": "--categorical", "eval_set": "--valid or --valid-fraction"}


class UsageError(Exception):
    """The command line, or a file of settings, asks for something that there is not."""


class Failure(Exception):
    """What was asked for cannot be done; the message names the file."""


@contextmanager
def naming(file: str) -> Iterator[None]:
    """Put the name of a file in front of what is raised, unless it is said already."""
    try:
        yield
    except BrokenPipeError:  # of standard output, which no file is to blame for
        raise
    except _TELLING as error:
        words = _words_of(error).removeprefix("X: ")
        for named, option in _OPTIONS.items():
            if named in words:
                words += f" (On the command line: {option}.)"
        is_said = f"{file}:" in words or repr(file) in words
        raise Failure(words if is_said else f"{file}: {words}") from error


def exit_status(command: Callable[[], int], *, with_traceback: bool) -> int:
    """Run a command and return its exit status; errors are one line on standard error.

    Parameters
    ----------
    command : callable
        Returns the exit status of a command that does not fail.
    with_traceback : bool
        Whether errors show where they were raised.
    """
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            return command()
    except KeyboardInterrupt:
        say("stopped")
        return INTERRUPTED
    except BrokenPipeError:  # whoever read standard output has seen enough
        _give_up_standard_output()
        return FAILED
    except Exception as error:
        if with_traceback:
            traceback.print_exc()
        telling = isinstance(error, (UsageError, Failure, *_TELLING))
        doubt = "" if telling else f"{type(error).__name__} (--traceback shows where): "
        say(doubt + _words_of(error))
        return WRONG_USAGE if isinstance(error, UsageError) else FAILED


def say(words: str) -> None:
    """Write a line to standard error."""
    print(f"polyleaf: {words}", file=sys.stderr)


def _words_of(error: BaseException) -> str:
    words = " ".join(str(error).split())
    return words or ("there is not enough memory" if isinstance(error, MemoryError) else type(error).__name__)


def _give_up_standard_output() -> None:
    """Let what is left to be written go nowhere, so that the end of the program does not fail at it."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    say("warning: " + " ".join(str(message).split()))
