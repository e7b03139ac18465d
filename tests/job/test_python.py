"""One rank of the gang that test_python.c makes. The argument says what to do."""

import os
import signal
import sys

import phalanx


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


{"talk": talk, "restore": restore, "lose": lose}[sys.argv[1]]()
