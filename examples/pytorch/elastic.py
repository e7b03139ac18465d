#!/usr/bin/env python3
"""The training of train.py by phalanx.train_loop: living ranks keep their processes when others are lost.

The state (weights, the optimizer's moments) is registered where it lies, and held in memory every few steps. A
step's batch is of the same samples whatever the number of ranks, so a job that goes on without a replica follows
the same curve. Exit status: 0 done, 1 failed, 77 skipped (no torch).
"""

import gc
import traceback

from train import CONTEXT, Model, end_process, load_text, make_parser, pick_batch, say_result  # 77 without torch

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import phalanx
from phalanx.distributed import GlooGroup


class Training:
    """What the callbacks of train_loop share."""

    def __init__(self, job: phalanx.Job, options):
        self.job, self.options, self.group, self.parallel = job, options, GlooGroup(job), None
        self.text, vocabulary = load_text(options.text)
        torch.manual_seed(options.seed)
        self.model = Model(vocabulary)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=options.rate)
        self.make_moments()
        self.first = [tensor.clone() for tensor in self.state().values()]
        self.loss = float("nan")
        job.checkpoint_register(self.state())

    def make_moments(self):
        """Adam makes its state in its first step, which moves nothing where no gradient is."""
        for parameter in self.model.parameters():
            parameter.grad = torch.zeros_like(parameter)
        self.optimizer.step()
        self.optimizer.zero_grad()
        for moments in self.optimizer.state.values():
            for tensor in moments.values():
                tensor.zero_()

    def state(self):
        """Every tensor that a step changes."""
        state = {f"model/{name}": tensor for name, tensor in self.model.state_dict().items()}
        for at, parameter in enumerate(self.model.parameters()):
            for name, tensor in self.optimizer.state[parameter].items():
                state[f"optimizer/{at}/{name}"] = tensor
        return state

    def reset(self):
        for tensor, first in zip(self.state().values(), self.first):
            tensor.copy_(first)

    def begin(self, step: int):
        self.group.begin()
        # Without find_unused_parameters the order of sums changes after the first step of each attempt.
        self.parallel = DistributedDataParallel(self.model, find_unused_parameters=True)
        if self.job.rank == 0:
            print(f"attempt {self.job.attempt} of {self.job.world_size} ranks goes on from step {step}", flush=True)

    def end(self):
        self.parallel = None
        self.group.end()
        gc.collect()  # DDP refers to itself; with it the connections go

    def step(self, step: int):
        options, world = self.options, self.job.world_size
        inputs, targets = pick_batch(self.text, options.seed, step, options.batch, self.job.rank, world)
        # DDP divides by the world: this is the mean over the samples of the whole batch, however they are cut.
        loss = nn.functional.cross_entropy(self.parallel(inputs).flatten(0, 1), targets.flatten(), reduction="sum")
        loss = loss * (world / (options.batch * CONTEXT))
        self.optimizer.zero_grad()
        loss.backward()
        mean = loss.detach() / world
        with self.job.phase("communicate"):
            dist.all_reduce(mean)
        self.optimizer.step()  # after the last collective: a step that fails has changed nothing
        self.loss = mean.item()
        if self.job.rank == 0 and (step + 1) % 20 == 0:
            print(f"step {step + 1}/{options.steps} loss {self.loss:.4f}", flush=True)
        return {"loss": self.loss}


def main() -> int:
    parser = make_parser(__doc__)
    parser.add_argument("--hold-every", type=int, default=2, help="steps between checkpoints in memory")
    options = parser.parse_args()
    torch.set_num_threads(1)
    try:
        job = phalanx.join(rejoins=True)
        training = Training(job, options)
        phalanx.train_loop(job, steps=options.steps, step=training.step, begin=training.begin, end=training.end,
                           reset=training.reset, abort=training.group.abort, hold_every=options.hold_every,
                           save_every=options.checkpoint_every, whole_steps=True)  # fmt: skip
    except Exception:
        traceback.print_exc()
        return 1
    if job.rank == 0:
        say_result(options.steps, training.loss, training.model)
    training.end()
    job.leave()
    return 0


if __name__ == "__main__":
    end_process(main())
