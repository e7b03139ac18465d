"""One rank of the gang that test_python.c makes. The argument says what to do."""

import array
import os
import select
import signal
import struct
import sys
import tempfile
import threading
import traceback

import phalanx


def module(name):
    """None where it is not installed, or cannot be loaded: torch beside the address sanitizer."""
    try:
        return None if "LD_PRELOAD" in os.environ else __import__(name)
    except ImportError:
        return None


numpy = torch = None
if sys.argv[1] in ("keep", "load"):
    numpy, torch = module("numpy"), module("torch")
    if sys.argv[1] == "keep" and os.environ["PHX_RANK"] == "0":
        if numpy is None or torch is None:
            print("skip: regions of numpy and torch, which are not both here", flush=True)
        elif not torch.cuda.is_available():
            print("skip: regions of a device, of which there is none", flush=True)


def talk():
    with phalanx.join(join_timeout=120) as job:
        rank, world = job.rank, job.world_size
        assert (rank, world, job.attempt) == (int(os.environ["PHX_RANK"]), 3, 0)
        job.put(f"key-{rank}", b"x" * 5000 + bytes([rank]))
        assert job.get(f"key-{(rank + 1) % world}", timeout=120) == b"x" * 5000 + bytes([(rank + 1) % world])
        try:
            job.get("absent", timeout=0)
            raise AssertionError("an absent key was found")
        except phalanx.NotFoundError as error:
            assert error.code == -7 and isinstance(error, LookupError)
        assert job.peer(0).address == "127.0.0.1" and job.failure_fd() >= 0
        assert job.checkpoint_restore() is None and job.notice() is None
        job.set_total_steps(10)
        with job.phase("compute"):
            job.step(3, loss=0.5, rate=2)
        try:
            with job.phase("sleep"):
                raise AssertionError("a phase of another name")
        except KeyError:
            pass
        job.checkpoint_save(3, bytearray(b"state of %d" % rank))
        job.checkpoint_wait(3, timeout=120)
        job.barrier(timeout=120)
        try:
            job.step(4, **{"two words": 1})
            raise AssertionError("a wrong name was taken")
        except ValueError:
            pass
    job.close()


def restore():
    with phalanx.join(join_timeout=120) as job:
        assert job.attempt == 1
        saved = job.checkpoint_restore()
        assert saved is not None and saved.step == 3 and saved.data == b"state of %d" % job.rank


def lose():
    job = phalanx.join(join_timeout=120)
    job.barrier(timeout=120)
    if job.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        job.barrier()
        raise AssertionError("a barrier without rank 1")
    except phalanx.PeerLostError as error:
        assert error.rank == 1


def state(job, number):
    """Regions of every kind, and which of them are parts. Their bytes are a function of `number`."""
    regions = {"flags": bytearray([number] * 3), "sums": array.array("d", [number, -number]), "none": array.array("i")}
    shards = {"sums": (-1, job.rank, job.world_size)}
    if numpy is not None:
        regions["numpy/w"] = numpy.arange(12, dtype=numpy.float32).reshape(3, 4) * number + job.rank
        regions["numpy/mask"] = numpy.array([[True, number % 20 == 0]])
        regions["numpy/half"] = numpy.full((), number, dtype=numpy.float16)
        shards["numpy/w"] = (0, job.rank, job.world_size)
    if torch is not None:
        regions["torch/w"] = torch.nn.Parameter(torch.full((2, 3), float(number) + job.rank))
        regions["torch/bf16"] = torch.full((5,), number, dtype=torch.bfloat16)
        regions["torch/mask"] = torch.tensor([number % 20 == 0, True])
        regions["torch/step"] = torch.tensor(number)
        if torch.cuda.is_available():
            regions["cuda/w"] = torch.full((7,), float(number), device="cuda")
    return regions, shards


def plain(value):
    if torch is not None and isinstance(value, torch.Tensor):
        return str(value.dtype), value.tolist()
    return value.tolist() if hasattr(value, "tolist") else bytes(value)


def refused(job, what, regions, shards=None):
    try:
        job.checkpoint_register(regions, shards)
        raise AssertionError(f"taken: {what}")
    except ValueError as error:
        assert what in str(error), f"{error} does not say {what}"


def wrong_regions(job):
    refused(job, "b, which is no region", {"a": bytearray(1)}, {"b": (0, 0, 2)})
    refused(job, "region a: part 2 of 2", {"a": bytearray(1)}, {"a": (0, 2, 2)})
    refused(job, "(axis, index, count)", {"a": bytearray(1)}, {"a": 1})
    refused(job, "region a: str is no tensor", {"a": "text"})
    refused(job, "writable", {"a": b"constant"})
    refused(job, "name", {"a b": bytearray(1)})
    refused(job, "regions", {})
    if numpy is not None:
        refused(job, "not contiguous", {"a": numpy.zeros((4, 4))[:, 1]})
        refused(job, "complex128", {"a": numpy.zeros(1, dtype=complex)})
        refused(job, "can't be kept", {"a": numpy.zeros(1, dtype=">f4")})
        refused(job, "9 dimensions", {"a": numpy.zeros((1,) * 9)})
        constant = numpy.zeros(1)
        constant.flags.writeable = False
        refused(job, "written", {"a": constant})
    if torch is not None:
        refused(job, "not contiguous", {"a": torch.zeros(4, 4).t()})
        refused(job, "complex64", {"a": torch.zeros(1, dtype=torch.complex64)})
        refused(job, "meta", {"a": torch.zeros(1, device="meta")})
        moves = torch.zeros(1000)
        job.checkpoint_register({"a": moves})
        moves.data = torch.zeros(2000)
        for call in (lambda: job.checkpoint_take(1), job.checkpoint_load):
            try:
                call()
                raise AssertionError("memory that has moved")
            except ValueError as error:
                assert "register again" in str(error)


def keep():
    job = phalanx.join(join_timeout=120)
    try:
        job.checkpoint_take(1)
        raise AssertionError("nothing is registered")
    except ValueError:
        pass
    wrong_regions(job)
    regions, shards = state(job, 10)
    job.checkpoint_register(regions, shards)
    try:
        job.checkpoint_load()
        raise AssertionError("the bytes of another program were taken")
    except phalanx.InvalidError:
        pass
    try:
        job.checkpoint_take(10, memory=False)
        raise AssertionError("kept nowhere")
    except phalanx.InvalidError:
        pass
    job.checkpoint_take(10, storage=True)
    job.checkpoint_wait(10, timeout=120)
    regions, shards = state(job, 20)
    job.checkpoint_register(regions, shards)
    del regions
    job.checkpoint_take(20)
    job.checkpoint_held(20, timeout=120)
    if job.rank == 0:
        select.select([job.failure_fd()], [], [])
    os._exit(0)  # without a goodbye, which would let go of what is held


def load():
    with phalanx.join(join_timeout=120) as job:
        wanted, _ = state(job, 20)
        regions, shards = state(job, 0)
        job.checkpoint_register(regions, shards)
        assert job.checkpoint_load() == 20
        for name, value in wanted.items():
            assert plain(regions[name]) == plain(value), (name, regions[name], value)


def imports():
    header = b'{"__metadata__":{"format":"pt"},"w":{"dtype":"F32","shape":[6],"data_offsets":[0,24]}}'
    with tempfile.NamedTemporaryFile(suffix=".safetensors") as file, phalanx.join(join_timeout=120) as job:
        file.write(struct.pack("<Q", len(header)) + header + struct.pack("<6f", *range(6)))
        file.flush()
        part, other = array.array("f", [9, 9]), bytearray(b"stays")
        job.checkpoint_register({"w": part, "other": other}, {"w": (0, job.rank, 3)})
        assert job.checkpoint_import(file.name) == 1
        assert list(part) == [2 * job.rank, 2 * job.rank + 1] and other == b"stays"
        try:
            job.checkpoint_import(file.name + ".nowhere")
            raise AssertionError("what is not there was imported")
        except phalanx.NotFoundError:
            pass


def rejoin(survives):
    job = phalanx.join(join_timeout=120, rejoins=True)
    assert job.full_world_size == 3 and job.attempt == (0 if survives else 1)
    if survives:
        port = os.environ["PHX_RENDEZVOUS"]
        if job.rank == 1:
            for rank in (0, 2):  # they have joined, too
                job.get(f"joined-{rank}", timeout=120)
            os.kill(os.getpid(), signal.SIGKILL)
        try:
            job.put(f"joined-{job.rank}", b"")
            job.barrier()
            raise AssertionError("a barrier without rank 1")
        except phalanx.PeerLostError as error:
            assert error.rank == 1
        except phalanx.RejoinError:
            pass  # the agent's word has come before rank 1's connection ended
        job.rejoin(timeout=120)
        assert job.attempt == 1 and os.environ["PHX_RENDEZVOUS"] != port
    job.check()
    place = [os.environ.get(name) for name in ("RANK", "WORLD_SIZE", "PHX_ATTEMPT")]
    assert not survives or place == [str(job.rank), "3", "1"], place
    job.barrier(timeout=120)
    job.leave()


class Sum:
    """A job whose state after n steps is the sum of the numbers to n; its step hears of no loss by itself."""

    def __init__(self, job):
        self.job, self.sum, self.begun, self.calls = job, array.array("Q", [99]), [], []
        self.over = threading.Event()

    def reset(self):
        self.calls.append("reset")
        self.sum[0] = 0

    def begin(self, made):
        assert self.sum[0] == made * (made + 1) // 2
        assert int(os.environ.get("PHX_ATTEMPT", 0)) == self.job.attempt
        self.calls.append("begin")
        self.begun.append(made)

    def end(self):
        self.calls.append("end")
        self.over.clear()
        raise OSError("what end raises is printed, and no more")

    def abort(self):
        self.calls.append("abort")
        self.over.set()

    def step(self, made):
        if made == 10 and self.job.attempt == 0:
            if self.job.rank == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            self.over.wait()
            raise RuntimeError("the collective was aborted")
        self.job.barrier(timeout=120)
        self.sum[0] += made + 1
        return {"sum": self.sum[0]}


def loop(survives):
    sys.stderr = open(os.devnull, "w")  # what end raises
    job = phalanx.join(join_timeout=120, rejoins=True)
    run = Sum(job)
    job.checkpoint_register({"sum": run.sum})
    phalanx.train_loop(job, steps=30, step=run.step, begin=run.begin, end=run.end, reset=run.reset,
                       abort=run.abort, hold_every=2, save_every=30)  # fmt: skip
    assert run.sum[0] == 30 * 31 // 2, run.sum
    wanted = ["reset", "begin", "abort", "end", "begin"] if survives else ["begin"]
    assert run.calls == wanted and run.begun[-1] in (8, 10), (run.calls, run.begun)
    job.leave()


class Doubting(Sum):
    """After five steps rank 2 has lost its sum."""

    def step(self, made):
        if made == 5 and self.job.attempt == 0 and self.job.rank == 2:
            self.sum[0] = 777
            raise phalanx.RetryError("the sum is gone")
        return super().step(made)


def doubt():
    sys.stderr = open(os.devnull, "w")
    job = phalanx.join(join_timeout=120, rejoins=True)
    run = Doubting(job)
    job.checkpoint_register({"sum": run.sum})
    phalanx.train_loop(job, steps=30, step=run.step, begin=run.begin, end=run.end, reset=run.reset,
                       abort=run.abort, hold_every=2, whole_steps=True)  # fmt: skip
    assert run.sum[0] == 30 * 31 // 2 and run.begun == [0, 5], (run.sum, run.begun)
    job.leave()


def raised_by(job, kind, step, **more):
    """train_loop raises what its step raises, with the place where it was raised."""
    try:
        phalanx.train_loop(job, steps=10, step=step, **more)
    except kind as error:
        return error, [frame.name for frame in traceback.extract_tb(error.__traceback__)]
    raise AssertionError("nothing was raised")


def stops():
    """train_loop raises what its callbacks do."""
    job = phalanx.join(join_timeout=120)
    own, values = KeyError("own"), array.array("d", [1])
    job.checkpoint_register({"values": values})

    def fail(made):
        job.barrier(timeout=120)
        raise own

    def interrupt(made):
        job.barrier(timeout=120)
        if made == 2:
            signal.raise_signal(signal.SIGINT)

    def lose(made):
        raise phalanx.PeerLostError("my own connection broke", -5, 2)

    error, frames = raised_by(job, KeyError, fail)
    assert error is own and frames[-1] == "fail", frames
    signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs this may have it ignored
    raised_by(job, KeyboardInterrupt, interrupt)
    error, _ = raised_by(job, phalanx.PeerLostError, lose)
    assert error.rank == 2 and "my own" in str(error)
    raised_by(job, KeyError, interrupt, begin=fail)
    error, _ = raised_by(job, ValueError, lambda made: {f"m{at}": at for at in range(17)})
    assert "at most 16" in str(error)
    error, _ = raised_by(job, phalanx.InvalidError, lambda made: {"two words": 1})
    error, _ = raised_by(job, ValueError, interrupt, hold_every=-1)
    assert "hold_every is -1" in str(error)
    phalanx.train_loop(job, steps=3, step=lambda made: None, hold_every="auto")
    job.leave()
    raised_by(job, ValueError, fail)


def group():
    """A collective for which rank 1 never comes ends by abort, and only by that."""
    if module("torch") is None:
        return
    from torch import distributed, ones
    from phalanx.distributed import GlooGroup

    job = phalanx.join(join_timeout=120)
    gloo, values = GlooGroup(job, timeout=100000), ones(4)
    gloo.begin()
    distributed.all_reduce(values)
    assert values.tolist() == [3, 3, 3, 3]
    if job.rank != 1:
        threading.Thread(target=gloo.abort).start()
        try:
            distributed.all_reduce(values)
            raise AssertionError("a collective without rank 1")
        except RuntimeError:
            pass
    job.barrier(timeout=120)
    gloo.end()
    assert not distributed.is_initialized()
    job.leave()
    sys.stdout.flush()
    os._exit(0)  # gloo's threads may still look at what is broken


STAGES = {"talk": talk, "restore": restore, "keep": keep, "load": load, "import": imports, "lose": lose, "raise": stops,
          "doubt": doubt, "rejoin": lambda: rejoin(True), "rejoined": lambda: rejoin(False),
          "group": group, "loop": lambda: loop(True), "looped": lambda: loop(False)}  # fmt: skip
STAGES[sys.argv[1]]()
