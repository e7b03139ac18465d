#!/usr/bin/env python3
"""A mixture of experts, one on each of four devices, checked against the same layer on one device.

    phalanx flow up --hosts 4 --devices 1 &            prints "ready ADDRESS"
    PHX_FLOW=ADDRESS examples/flow/experts.py

Each device has a part of the tokens and one expert. A router sends every token to one expert (Fedus et al., Switch
Transformers, 2021): two all-to-alls bring tokens to experts and results back. An expert takes a bounded number of
tokens of each device, so that shapes are static; tokens beyond it get nothing from the layer. A second loss keeps the
experts' loads alike. Tokens belong to groups whose targets are different linear maps, which the experts divide among
them.
"""

import argparse
import sys

import numpy

import phalanx.flow as flow
from phalanx.flow import P

EXPERTS, TOKENS, WIDTH, INNER = 4, 64, 8, 32  # TOKENS: of each device
CAPACITY = 2 * TOKENS // EXPERTS  # tokens that an expert takes of one device
RATE, BALANCE = 0.2, 0.1


# ---- the layer: functions that are traced ----


def route(router, x):
    """Which slot of which expert each token takes: (part, token, expert, slot), 0 or 1; and its gate's value."""
    share = flow.softmax(x @ router)
    chosen = flow.one_hot(flow.argmax(share, -1), EXPERTS)
    slot = flow.cumsum(chosen, 1) - 1.0  # how many of the tokens before it chose the expert
    taken = flow.one_hot(slot.astype(flow.int32), CAPACITY) * chosen.reshape(*chosen.shape, 1)
    balance = EXPERTS * (chosen.mean(1) * share.mean(1)).sum(-1).mean()
    return flow.stop_gradient(taken), (share * chosen).sum(-1), balance


def layer(weights, x, exchange):
    """The layer on parts of tokens (part, token, width). `exchange` turns (part, expert, ...) into (expert, part, ...)
    and back, over the devices if parts and experts lie on several."""
    taken, gate, balance = route(weights["router"], x)
    there = exchange(flow.einsum("ptes,ptd->pesd", taken, x))
    inner = flow.einsum("epsd,edh->epsh", there, weights["up"])
    back = exchange(flow.einsum("epsh,ehd->epsd", inner * flow.sigmoid(inner), weights["down"]))
    mixed = flow.einsum("ptes,pesd->ptd", taken, back)
    return mixed * gate.reshape(*gate.shape, 1), balance, taken


def loss_of(weights, x, targets, exchange):
    found, balance, taken = layer(weights, x, exchange)
    error = flow.square(found - targets).mean()
    return error + BALANCE * balance, (error, taken.sum((0, 1, 3)))


def step_with(exchange, average, share):
    """A step of training. `average` is over the devices; `share` is the weight of one device's loss in it."""

    def step(weights, x, targets):
        (_, (error, loads)), slopes = flow.value_and_grad(
            lambda w: loss_of(w, x, targets, exchange), has_aux=True)(weights)
        slopes = {"router": average(slopes["router"]), "up": slopes["up"] * share, "down": slopes["down"] * share}
        return flow.tree_map(lambda w, g: w - RATE * g, weights, slopes), average(error), average(loads)

    return step


def over_devices(x):
    return flow.swapaxes(flow.all_to_all(x, "expert", 1, 0), 0, 1)


def on_one_device(x):
    return flow.swapaxes(x, 0, 1)


# ---- data ----


def first_weights():
    draw = numpy.random.default_rng(9)

    def matrix(*shape):
        return (draw.standard_normal(shape) / shape[-2] ** 0.5).astype(numpy.float32)

    return {"router": matrix(WIDTH, EXPERTS), "up": matrix(EXPERTS, WIDTH, INNER),
            "down": matrix(EXPERTS, INNER, WIDTH)}


def batch_of(step):
    """Tokens around the centers of EXPERTS groups, and what the group's map makes of them."""
    fixed, draw = numpy.random.default_rng(3), numpy.random.default_rng([4, step])
    centers = 2 * fixed.standard_normal((EXPERTS, WIDTH))
    maps = fixed.standard_normal((EXPERTS, WIDTH, WIDTH)) / WIDTH ** 0.5
    group = draw.integers(0, EXPERTS, (EXPERTS, TOKENS))
    x = centers[group] + 0.5 * draw.standard_normal((EXPERTS, TOKENS, WIDTH))
    targets = numpy.einsum("ptd,ptdo->pto", x, maps[group])
    return x.astype(numpy.float32), targets.astype(numpy.float32)


def train(run, steps):
    """Losses, and the loads of the experts at the end."""
    weights, losses = first_weights(), []
    for at in range(steps):
        weights, loss, loads = run(weights, *batch_of(at))
        losses.append(loss)
    return [float(loss) for loss in flow.get(losses)], flow.get(loads)


def main():
    parser = argparse.ArgumentParser(description="trains a mixture of four experts on four devices")
    parser.add_argument("--steps", type=int, default=150)
    options = parser.parse_args()
    connection = flow.connect(name="experts")
    alone = flow.jit(step_with(on_one_device, lambda found: found, 1.0))
    expected, _ = train(alone, options.steps)

    mesh = connection.mesh(EXPERTS, ("expert",))
    print(f"{EXPERTS} experts on {mesh}; each takes at most {CAPACITY} of a device's {TOKENS} tokens", flush=True)
    own = {"router": P(), "up": P("expert"), "down": P("expert")}
    step = step_with(over_devices, lambda found: flow.pmean(found, "expert"), 1 / EXPERTS)
    run = flow.shard_map(step, mesh=mesh, in_specs=(own, P("expert"), P("expert")), out_specs=(own, P(), P()))
    losses, loads = train(run, options.steps)

    worst = max(abs(a - b) for a, b in zip(losses, expected))
    # Sums have another order on a mesh, so a token between two experts may go to the other one.
    right = worst < losses[0] / 100 and losses[-1] < losses[0] / 10 and loads.min() > 0
    print(f"tokens of a device that each expert took at the end: {' '.join(f'{load:.1f}' for load in loads)}; "
          f"{1 - loads.sum() / TOKENS:.1%} found no room", flush=True)
    print(f"loss {losses[0]:.4f} to {losses[-1]:.4f}, one device: {expected[-1]:.4f}, largest difference {worst:.1e}: "
          f"{'right' if right else 'wrong'}", flush=True)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
