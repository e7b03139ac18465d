"""The codes of ``enum phx_code`` as exceptions."""

from typing import Optional


class PhalanxError(Exception):
    """A call of libphalanx failed. ``code`` is its ``enum phx_code``."""

    code = 0

    def __init__(self, message: str, code: int, rank: Optional[int] = None):
        super().__init__(message)
        self.code = code
        self.rank = rank


class InvalidError(PhalanxError, ValueError):
    """A wrong argument or environment."""


class OutOfMemory(PhalanxError, MemoryError):
    """Memory or descriptors ran out."""


class InputOutputError(PhalanxError, OSError):
    """A system call failed."""


class TimeoutExpired(PhalanxError, TimeoutError):
    """The time is over; the same call may be made again to go on waiting."""


class PeerLostError(PhalanxError):
    """A rank (``rank``) is lost, so this attempt can't go on: ``job.rejoin()``, or end the process."""


class FencedError(PhalanxError):
    """A newer attempt exists: end the process at once."""


class NotFoundError(PhalanxError, LookupError):
    """There is no such checkpoint or key."""


class CorruptError(PhalanxError):
    """A stored shard differs from what was saved."""


class SpaceError(PhalanxError):
    """A buffer is too small, or the key-value store is full."""


class RejoinError(PhalanxError):
    """The membership has changed: call ``job.rejoin()``."""


class RetryError(PhalanxError):
    """Raise it from a step (``train_loop``) when this rank's state is bad and no process is lost. All ranks go back
    to the newest step that every rank holds, and repeat it; this rank loads its part."""

    def __init__(self, message: str = "", code: int = -11, rank: Optional[int] = None):
        super().__init__(message, code, rank)


_BY_CODE = {
    -1: InvalidError,
    -2: OutOfMemory,
    -3: InputOutputError,
    -4: TimeoutExpired,
    -5: PeerLostError,
    -6: FencedError,
    -7: NotFoundError,
    -8: CorruptError,
    -9: SpaceError,
    -10: RejoinError,
    -11: RetryError,
}


def raise_for(code: int, rank: int, message: str) -> None:
    """Raises the exception of a code."""
    kind = _BY_CODE.get(code, PhalanxError)
    raise kind(message, code, rank if rank >= 0 else None)
