"""train_loop(): a training loop that outlives the loss of other ranks; phx_run_steps for Python."""

import ctypes
import traceback
from typing import Any, Callable, Mapping, Optional, Union

from . import _library
from ._errors import PhalanxError, raise_for
from ._job import Job, refresh_environment

_IO, _FENCED = -3, -6  # PHX_ERROR_IO, PHX_ERROR_FENCED
_METRICS_MAX = 16
_AUTO = 2**64 - 1  # PHX_AUTO


class _Run:
    """The callbacks of one train_loop, and the exception that ended the newest of them."""

    def __init__(self, job: Job):
        self.job = job
        self.raised: Optional[BaseException] = None
        self.said = (0, b"")  # code and words that the library has of it
        self.loop = _library.LoopStruct()
        self.metrics = (_library.Metric * _METRICS_MAX)()
        self.loop.metrics = self.metrics

    def call(self, function: Callable[[], Any], error) -> int:
        """What a callback answers: 0, or the code of the exception, which is kept to be raised again."""
        try:
            function()
            return 0
        except BaseException as raised:  # nothing may be raised through C
            self.raised = raised
            return self._describe(raised, error)

    def _describe(self, raised: BaseException, error) -> int:
        if isinstance(raised, PhalanxError) and raised.code < 0:
            code = raised.code
        else:  # what is no Exception (KeyboardInterrupt) ends the loop at once, as being fenced does
            code = _IO if isinstance(raised, Exception) else _FENCED
        text = "".join(traceback.format_exception_only(type(raised), raised)).strip()
        rank = getattr(raised, "rank", None) if isinstance(raised, PhalanxError) else None
        error.contents.code, error.contents.rank = code, -1 if rank is None else rank
        error.contents.message = text.replace("\n", " ").encode(errors="replace")[:247]
        self.said = (code, error.contents.message)
        return code

    # ---- the callbacks, as the library calls them ----

    def plain(self, function: Callable[[], Any]):
        return _library.CALL(lambda _job, _context, error: self.call(function, error))

    def at(self, function: Callable[[int], Any]):
        return _library.CALL_AT(lambda _job, _context, at, error: self.call(lambda: function(at), error))

    def end(self, function: Callable[[], Any]):
        def undo(_job, _context):
            try:
                function()
            except Exception:  # a broken connection can't be closed well, and what comes next is new
                traceback.print_exc()
            except BaseException as raised:
                self.raised = raised

        return _library.END(undo)

    def aborting(self, function: Callable[[], Any]):
        def call(_job):
            function()  # what it raises is told by ctypes, and the attempt ends without it

        return _library.ABORT(call)

    def arrange(self, function: Optional[Callable[[], Any]]) -> None:
        self.raised, stopped = None, self.raised
        if stopped is not None and not isinstance(stopped, Exception):
            raise stopped
        refresh_environment()
        if function is not None:
            function()

    def take_metrics(self, metrics: Optional[Mapping[str, float]]) -> None:
        metrics = metrics or {}
        if len(metrics) > _METRICS_MAX:
            raise ValueError(f"a step has {len(metrics)} metrics, at most {_METRICS_MAX} are taken")
        for at, (name, value) in zip(self.metrics, metrics.items()):
            at.name, at.value = name.encode(), float(value)
        self.loop.metric_count = len(metrics)

    def fetch(self) -> None:
        self.job._registered().fetch()

    def deliver(self) -> None:
        self.job._registered().deliver()

    # ---- the run ----

    def make(self) -> None:
        """Makes all steps; raises the error that ended them."""
        error = _library.Error()
        code = self.job._library.phx_run_steps(
            self.job._context, ctypes.byref(self.loop), ctypes.byref(error)
        )
        raised, self.raised = self.raised, None
        if code == 0:
            return
        if raised is not None and (self.said == (code, error.message) or not isinstance(raised, Exception)):
            raise raised
        try:
            raise_for(code, error.rank, error.message.decode(errors="replace"))
        except PhalanxError as final:  # as when no next attempt could be reached
            raise final from raised


def _check(job: Job, **numbers: Union[int, str]) -> None:
    if job._context is None:
        raise ValueError("the job was left or closed")
    for name, value in numbers.items():
        if value == "auto" and name != "steps":
            continue
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**64:
            raise ValueError(f"train_loop: {name} is {value!r}, not a number of steps")


def train_loop(
    job: Job,
    *,
    steps: int,
    step: Callable[[int], Optional[Mapping[str, float]]],
    begin: Optional[Callable[[int], Any]] = None,
    end: Optional[Callable[[], Any]] = None,
    reset: Optional[Callable[[], Any]] = None,
    arrange: Optional[Callable[[], Any]] = None,
    abort: Optional[Callable[[], Any]] = None,
    hold_every: Union[int, str] = 0,
    save_every: Union[int, str] = 0,
    whole_steps: bool = False,
) -> None:
    """Makes the steps of the job from its newest checkpoint to ``steps``; holds, saves and reports them, and
    goes on in this process when another rank is lost (``job`` comes from ``join(rejoins=True)``).

    The state is what ``job.checkpoint_register`` was given, here or in ``arrange``. The callbacks, of which
    all but ``step`` may be left out:

    ``step(n)``    makes a step, n being made; its metrics as a mapping (``{"loss": 1.5}``), or None
    ``begin(n)``   the state is that after n steps: makes what belongs to one attempt, as a process group
    ``end()``      undoes ``begin``, also one that failed; what it raises is printed
    ``reset()``    there is no checkpoint: sets the state to what it is before the first step
    ``arrange()``  rank and world are known (os.environ says them): registers regions that depend on them
    ``abort()``    the attempt is over: makes a ``begin`` or ``step`` return that doesn't hear of it. Called in
                   a thread of the library, which needs the interpreter's lock: what blocks in C without
                   giving it up can't be aborted

    ``phalanx.RetryError`` from ``step`` ends the attempt for all ranks: this one's state is no good.
    What else ``begin`` or ``step`` raises ends the attempt, and the loop goes on with the next one, where the
    library knows or hears within three seconds that a rank is lost; otherwise it is raised here, as it was.
    KeyboardInterrupt and SystemExit always are. While the library waits for another rank's process, a signal
    is answered only after that. ``"auto"`` leaves an interval to the library. ``whole_steps``: a step that raises
    leaves the state as it was."""
    _check(job, steps=steps, hold_every=hold_every, save_every=save_every)
    run = _Run(job)
    loop = run.loop
    loop.size = ctypes.sizeof(loop)
    loop.steps = steps
    loop.hold_every = _AUTO if hold_every == "auto" else hold_every
    loop.save_every = _AUTO if save_every == "auto" else save_every
    loop.whole_steps = int(whole_steps)
    loop.arrange = run.plain(lambda: run.arrange(arrange))
    loop.step = run.at(lambda at: run.take_metrics(step(at)))
    loop.fetch, loop.deliver = run.plain(run.fetch), run.plain(run.deliver)
    if reset is not None:
        loop.reset = run.plain(reset)
    if begin is not None:
        loop.begin = run.at(begin)
    if end is not None:
        loop.end = run.end(end)
    if abort is not None:
        loop.abort = run.aborting(abort)
    run.make()
