"""Exceptions of flow, and where in the user's program something was called."""

import os
import sys
from typing import Any, Dict, Optional, Type

from .._errors import InvalidError, PhalanxError

_FOLDER = os.path.dirname(os.path.abspath(__file__)) + os.sep


def call_site() -> str:
    """``file:line`` of the innermost caller outside this package."""
    frame = sys._getframe(1)
    while frame is not None and os.path.abspath(frame.f_code.co_filename).startswith(_FOLDER):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame else "?"


class TraceError(InvalidError, TypeError):
    """A function can't be traced. ``site`` is the ``file:line`` of the user's call, which starts the message."""

    def __init__(self, message: str, site: Optional[str] = None):
        self.site = site or call_site()
        super().__init__(f"{self.site}: {message}", -1)


class ComputationError(PhalanxError):
    """A value was not computed.

    ``island``, ``device`` and ``incarnation`` say where (None: nowhere in particular), ``site`` is the ``file:line`` of
    the call that failed first, ``message`` the words of the runtime.
    """

    def __init__(self, message: str, site: str = "?", island: Optional[int] = None, device: Optional[int] = None,
                 incarnation: Optional[int] = None):
        super().__init__(f"{site}: {message}", -5)
        self.message, self.site = message, site
        self.island, self.device, self.incarnation = island, device, incarnation


class DeviceLost(ComputationError):
    """A device of the call is gone. The program may be launched again, on other devices."""


class FunctionFailed(ComputationError):
    """The function itself failed."""


class ArgumentFailed(ComputationError):
    """An argument of the launch had failed before."""


class Cancelled(ComputationError):
    """The launch was cancelled."""


class DeviceMemoryExhausted(ComputationError):
    """The devices have not enough memory for the call."""


_BY_REASON: Dict[int, Type[ComputationError]] = {
    1: DeviceLost,
    2: FunctionFailed,
    3: ArgumentFailed,
    4: Cancelled,
    5: DeviceMemoryExhausted,
}
_NONE = 2**32 - 1  # UINT32_MAX: none in particular


def failure_of(failure: Any, site: str) -> ComputationError:
    """The exception of a struct phx_flow_failure."""
    kind = _BY_REASON.get(failure.reason, ComputationError)
    places = [None if place == _NONE else place for place in (failure.island, failure.device, failure.incarnation)]
    return kind(failure.message.decode(errors="replace"), site, *places)
