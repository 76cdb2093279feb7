"""Runs that are killed: in a process of their own, at the n-th time that something is brought to disk."""

from __future__ import annotations

import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any


def run_and_kill(work: Callable[[], None], at: int) -> bool:
    """Do the work in a child that dies at its `at`-th fsync, link or rename; whether it came to its end."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads that the child does not use
        child = os.fork()
    if not child:
        _count_down(at)
        try:
            work()
        except BaseException:
            traceback.print_exc(file=sys.__stderr__)
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return False
    assert os.WEXITSTATUS(status) == 0
    return True


def _count_down(at: int) -> None:
    calls_left = [at]
    for module, name in ((os, "fsync"), (os, "link"), (Path, "replace"), (Path, "unlink")):
        real: Any = getattr(module, name)

        def counted(*args: Any, _real: Any = real, **named: Any) -> Any:
            calls_left[0] -= 1
            if calls_left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return _real(*args, **named)

        setattr(module, name, counted)
