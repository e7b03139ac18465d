"""The Python face of libphalanx: a training program's side of Phalanx.

    import phalanx

    with phalanx.join() as job:
        saved = job.checkpoint_restore()          # None: start from the beginning
        step, state = (saved.step, saved.data) if saved else (0, initial())
        while step < total:
            state, loss = train(state); step += 1
            job.step(step, loss=loss)
            if step % 100 == 0:
                job.checkpoint_save(step, state)

It is a thin layer (ctypes, Python 3.9 or later, no other packages) over the functions of
``phalanx/phalanx.h``, where the environment, the threads and the guarantees are described. Every call that
blocks releases the interpreter's lock.

The library is the file that the variable PHX_LIB names, otherwise the one that was installed with this
package, otherwise what the dynamic loader finds as ``libphalanx.so.0``.
"""

from ._errors import (
    CorruptError,
    FencedError,
    InvalidError,
    NotFoundError,
    PeerLostError,
    PhalanxError,
    RejoinError,
    RetryError,
    TimeoutExpired,
)
from ._job import Checkpoint, Drain, Job, Peer, Slice, join
from .loop import train_loop

__all__ = [
    "Checkpoint",
    "CorruptError",
    "Drain",
    "FencedError",
    "InvalidError",
    "Job",
    "NotFoundError",
    "Peer",
    "PeerLostError",
    "PhalanxError",
    "RejoinError",
    "RetryError",
    "Slice",
    "TimeoutExpired",
    "join",
    "train_loop",
]
