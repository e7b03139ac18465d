#!/usr/bin/env python3
"""Pipeline-parallel training of a small transformer (GPipe), checked against the same training on one device.

    phalanx flow up --hosts 4 --devices 2 &                      prints "ready ADDRESS"
    PHX_FLOW=ADDRESS examples/flow/pipeline.py                   four stages of one device
    PHX_FLOW=ADDRESS examples/flow/pipeline.py --data 2          four stages of two devices, data-parallel inside

A stage has one block of the model on a mesh of its own. A batch goes through the stages in micro-batches; each stage
keeps what came in, and computes its part again for the gradient (Huang et al., GPipe, 2019). The whole step, which is
some 40 calls on four meshes, is one program: the client sends one message a step, and values go from stage to stage
without it. Where the runtime has several islands, consecutive stages lie in one, and only what goes from the last stage
of an island to the first of the next one crosses the slower network.
"""

import argparse
import sys
import time

import phalanx.flow as flow
from phalanx.flow import P
from transformer import batch_of, block, descend, embed, first_weights, loss_at_head, loss_of, state_of

STAGES = 4


# ---- the stages: functions that are traced ----


def run_first(weights, tokens):
    return block(weights["block"], embed(weights["embedding"], tokens[:, :-1]))


def run_middle(weights, x):
    return block(weights["block"], x)


def run_last(weights, x, tokens):
    """The loss of a micro-batch."""
    return loss_at_head(weights["head"], block(weights["block"], x), tokens[:, 1:])


def add(sums, slopes):
    """Each device of a stage has its own sums: they have a dimension in front, which is cut along the mesh."""
    return flow.tree_map(lambda a, b: a + b.reshape(1, *b.shape), sums, slopes)


def backward_first(weights, sums, tokens, slope):
    """Adds the gradient of the weights to `sums`; `slope` is that of the loss by what the stage gave."""
    return add(sums, flow.grad(lambda w: (run_first(w, tokens) * slope).sum())(weights))


def backward_middle(weights, sums, x, slope):
    """As backward_first; also gives the gradient by what came in."""
    by_weights, by_x = flow.grad(lambda w, x: (run_middle(w, x) * slope).sum(), argnums=(0, 1))(weights, x)
    return add(sums, by_weights), by_x


def backward_last(weights, sums, x, tokens):
    loss, (by_weights, by_x) = flow.value_and_grad(run_last, argnums=(0, 1))(weights, x, tokens)
    return flow.pmean(loss, "data"), add(sums, by_weights), by_x


def no_sums(weights):
    return flow.tree_map(lambda w: w.reshape(1, *w.shape) * 0, weights)


# ---- the program ----


def split(weights):
    """The weights of each stage."""
    stages = [{"block": each} for each in weights["blocks"]]
    stages[0]["embedding"], stages[-1]["head"] = weights["embedding"], weights["head"]
    return stages


def program_on(meshes, count):
    """A step over `count` micro-batches: states of the stages and tokens become new states and losses."""
    whole, part = P(), P("data")

    def on(mesh, function, takes, gives):
        return flow.shard_map(function, mesh=mesh, in_specs=takes, out_specs=gives)

    def update(state, sums):
        slopes = flow.pmean(flow.tree_map(lambda g: g[0] / count, sums), "data")
        return descend(state, slopes)

    first, last = meshes[0], meshes[-1]
    empty = [on(mesh, no_sums, whole, part) for mesh in meshes]
    forward = [on(first, run_first, (whole, part), part)]
    forward += [on(mesh, run_middle, (whole, part), part) for mesh in meshes[1:-1]]
    backward = [on(first, backward_first, (whole, part, part, part), part)]
    backward += [on(mesh, backward_middle, (whole, part, part, part), (part, part)) for mesh in meshes[1:-1]]
    at_end = on(last, backward_last, (whole, part, part, part), (whole, part, part))
    step_of = [on(mesh, update, (whole, part), whole) for mesh in meshes]

    @flow.program
    def step(states, batches):
        weights = [state["weights"] for state in states]
        sums, losses = [make(w) for make, w in zip(empty, weights)], []
        entered, slopes = [], []
        for tokens in batches:
            row = [tokens]
            for run, w in zip(forward, weights):
                row.append(run(w, row[-1]))
            entered.append(row)
        for row in entered:
            loss, sums[-1], slope = at_end(weights[-1], sums[-1], row[-1], row[0])
            losses.append(loss)
            slopes.append(slope)
        for row, slope in zip(entered, slopes):
            for at in range(len(meshes) - 2, 0, -1):
                sums[at], slope = backward[at](weights[at], sums[at], row[at], slope)
            sums[0] = backward[0](weights[0], sums[0], row[0], slope)
        return [move(state, total) for move, state, total in zip(step_of, states, sums)], losses

    return step


def train_alone(steps, batch):
    """The losses of the same training on one device."""
    def step(state, tokens):
        loss, slopes = flow.value_and_grad(loss_of)(state["weights"], tokens)
        return descend(state, slopes), loss

    run, state, losses = flow.jit(step), state_of(first_weights(STAGES)), []
    for at in range(steps):
        state, loss = run(state, batch_of(at, batch))
        losses.append(loss)
    return [float(loss) for loss in losses]


def main():
    parser = argparse.ArgumentParser(description="trains a small transformer in four stages")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--micro", type=int, default=8, metavar="COUNT", help="micro-batches of a step")
    parser.add_argument("--data", type=int, default=1, metavar="DEVICES", help="devices of each stage")
    options = parser.parse_args()
    connection = flow.connect(name="pipeline")
    islands = connection.islands()
    meshes = [connection.mesh(options.data, ("data",), islands[at * len(islands) // STAGES].name)
              for at in range(STAGES)]
    share = options.micro / (options.micro + STAGES - 1)
    print(f"{STAGES} stages of {options.data} devices in {len(islands)} islands, {options.micro} micro-batches: "
          f"at best each stage works {share:.0%} of the time", flush=True)
    batch = options.micro * 2 * options.data
    expected = train_alone(options.steps, batch)
    step, losses, begin = program_on(meshes, options.micro), [], None
    states = [state_of(weights) for weights in split(first_weights(STAGES))]
    for at in range(options.steps):
        tokens = batch_of(at, batch).reshape(options.micro, -1, batch_of(at, 1).shape[1])
        states, some = step(states, list(tokens))
        losses.append(some)
        if at == 0:
            flow.get(some)  # everything is compiled
            begin = time.monotonic()
    losses = [float(sum(some) / len(some)) for some in flow.get(losses)]
    took = time.monotonic() - begin
    worst = max(abs(a - b) for a, b in zip(losses, expected))
    right = worst < 1e-3 and losses[-1] < losses[0] / 2
    print(f"{(options.steps - 1) / took:.1f} steps a second; "
          f"loss {losses[0]:.4f} to {losses[-1]:.4f}, one device: {expected[-1]:.4f}, largest difference {worst:.1e}: "
          f"{'right' if right else 'wrong'}", flush=True)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
