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

import numpy

import phalanx.flow as flow
from phalanx.flow import P

VOCABULARY, LENGTH, WIDTH, HEADS, INNER = 16, 8, 16, 2, 64
BATCH, DEVICES, STEPS_IN_PROGRAM = 16, 4, 4
RATE, MOMENTUM = 0.1, 0.9


# ---- the model: functions that are traced ----


def normalize(x, gain):
    """Layer normalization."""
    x = x - x.mean(-1, True)
    return x * flow.rsqrt((x * x).mean(-1, True) + 1e-5) * gain


def attention(x, weights):
    """Causal self-attention of several heads."""
    batch, length, width = x.shape
    query, key, value = ((x @ weights[name]).reshape(batch, length, HEADS, width // HEADS) for name in ("q", "k", "v"))
    scores = flow.einsum("bqhd,bkhd->bhqk", query, key) / (width // HEADS) ** 0.5
    scores = flow.where(flow.tril((length, length)), scores, -1e9)
    mixed = flow.einsum("bhqk,bkhd->bqhd", flow.softmax(scores), value)
    return mixed.reshape(batch, length, width) @ weights["o"]


def loss_of(weights, tokens):
    """The mean of -log p(next token)."""
    inputs, targets = tokens[:, :-1], tokens[:, 1:]
    x = flow.take(weights["embedding"], inputs) + weights["position"]
    x = x + attention(normalize(x, weights["gain1"]), weights)
    hidden = normalize(x, weights["gain2"]) @ weights["up"]
    x = x + (hidden * flow.sigmoid(1.702 * hidden)) @ weights["down"]
    logits = normalize(x, weights["gain3"]) @ weights["out"]
    return -(flow.log_softmax(logits) * flow.one_hot(targets, VOCABULARY)).sum(-1).mean()


def step_with(average):
    """A step of training; `average` is what is done with loss and gradients of the devices."""

    def step(state, tokens):
        loss, slopes = flow.value_and_grad(loss_of)(state["weights"], tokens)
        loss, slopes = average((loss, slopes))
        velocity = flow.tree_map(lambda v, g: MOMENTUM * v - RATE * g, state["velocity"], slopes)
        weights = flow.tree_map(lambda w, v: w + v, state["weights"], velocity)
        return {"weights": weights, "velocity": velocity}, loss

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


# ---- data ----


def first_state():
    """Parameters, drawn alike in each run, and the optimizer's velocities."""
    draw = numpy.random.default_rng(1)
    shapes = {
        "embedding": (VOCABULARY, WIDTH), "position": (LENGTH, WIDTH), "q": (WIDTH, WIDTH), "k": (WIDTH, WIDTH),
        "v": (WIDTH, WIDTH), "o": (WIDTH, WIDTH), "up": (WIDTH, INNER), "down": (INNER, WIDTH),
        "out": (WIDTH, VOCABULARY),
    }
    weights = {name: (draw.standard_normal(shape) / shape[0] ** 0.5).astype(numpy.float32)
               for name, shape in shapes.items()}
    weights.update({name: numpy.ones(WIDTH, numpy.float32) for name in ("gain1", "gain2", "gain3")})
    return {"weights": weights, "velocity": flow.tree_map(numpy.zeros_like, weights)}


def batch_of(step):
    """Sequences that go up by the same amount at each place."""
    draw = numpy.random.default_rng([2, step])
    first, stride = draw.integers(0, VOCABULARY, (BATCH, 1)), draw.integers(1, 4, (BATCH, 1))
    return ((first + stride * numpy.arange(LENGTH + 1)) % VOCABULARY).astype(numpy.int32)


# ---- training ----


def train(steps, state, count, after_launch=lambda at: None):
    """Runs `count` steps; returns the losses. A program whose devices were lost is run again."""
    kept, losses = state, []
    while len(losses) < count:
        at = len(losses)
        state, some = steps(state, [batch_of(at + i) for i in range(STEPS_IN_PROGRAM)])
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
    size = sum(array.size for array in first_state()["weights"].values())
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
