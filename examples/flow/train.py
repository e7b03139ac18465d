#!/usr/bin/env python3
"""Data-parallel training of a small transformer on four devices, checked against the same training on one device.

    phalanx flow up --hosts 4 --devices 2 &            prints "worker 2 process PID" and "ready ADDRESS"
    PHX_FLOW=ADDRESS examples/flow/train.py
    PHX_FLOW=ADDRESS examples/flow/train.py --kill PID --kill-at 24

Each device has a quarter of every batch and a copy of the parameters; gradients are averaged over the mesh. Several
steps are one program. After each program the parameters are also kept in this process: when a device is lost, the mesh
goes on on other devices from the parameters kept last. The losses are those of an undisturbed run.
"""

import argparse
import os
import signal
import sys

import phalanx.flow as flow
from phalanx.flow import P
from transformer import batch_of, descend, first_weights, loss_of, state_of

BATCH, DEVICES, STEPS_IN_PROGRAM = 16, 4, 4


def step_with(average):
    """A step of training; `average` is what is done with loss and gradients of the devices."""

    def step(state, tokens):
        loss, slopes = flow.value_and_grad(loss_of)(state["weights"], tokens)
        loss, slopes = average((loss, slopes))
        return descend(state, slopes), loss

    return step


def program_of(step):
    """Several steps as one program; gives the state and the losses."""

    @flow.program
    def steps(state, batches):
        losses = []
        for tokens in batches:
            state, loss = step(state, tokens)
            losses.append(loss)
        return state, losses

    return steps


def first_state():
    return state_of(first_weights(blocks=1))


def train(steps, state, count, after_launch=lambda at: None):
    """Runs `count` steps; returns the losses. A program whose devices were lost is run again."""
    kept, losses = state, []
    while len(losses) < count:
        at = len(losses)
        state, some = steps(state, [batch_of(at + i, BATCH) for i in range(STEPS_IN_PROGRAM)])
        after_launch(at)
        try:
            kept, some = flow.get((state, some))
        except (flow.DeviceLost, flow.ArgumentFailed) as lost:
            print(f"step {at}: {lost.message} (island {lost.island}, device {lost.device}, incarnation "
                  f"{lost.incarnation}, called at {lost.site}); going on from step {at}", flush=True)
            state = kept
            continue
        losses += [float(loss) for loss in some]
        print(f"step {len(losses)}: loss {losses[-1]:.4f}", flush=True)
    return losses


def main():
    parser = argparse.ArgumentParser(description="trains a small transformer on four devices")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--kill", type=int, metavar="PID", help="a worker's process, to be killed in the middle")
    parser.add_argument("--kill-at", type=int, default=24, metavar="STEP")
    options = parser.parse_args()
    connection = flow.connect(name="train")
    size = sum(array.size for array in flow.tree_flatten(first_weights(blocks=1))[0])
    print(f"{size} parameters; the same training on one device first", flush=True)
    single = flow.jit(step_with(lambda found: found))
    expected = train(program_of(single), first_state(), options.steps)

    mesh = connection.mesh(DEVICES, ("data",))
    parallel = flow.shard_map(step_with(lambda found: flow.pmean(found, "data")), mesh=mesh,
                              in_specs=(P(), P("data")), out_specs=(P(), P()))
    killed = []

    def kill(at):
        if options.kill and at >= options.kill_at and not killed:
            killed.append(at)
            os.kill(options.kill, signal.SIGKILL)
            print(f"step {at}: process {options.kill} is killed", flush=True)

    print(f"on {mesh}", flush=True)
    losses = train(program_of(parallel), first_state(), options.steps, kill)
    worst = max(abs(a - b) for a, b in zip(losses, expected))
    right = worst < 1e-3 and losses[-1] < losses[0] / 2
    print(f"loss {losses[0]:.4f} to {losses[-1]:.4f}, one device: {expected[-1]:.4f}, largest difference {worst:.1e}: "
          f"{'right' if right else 'wrong'}", flush=True)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
