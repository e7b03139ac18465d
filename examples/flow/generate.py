#!/usr/bin/env python3
"""Reinforcement learning: generators draw sequences with the newest weights, a trainer learns from their rewards.

    phalanx flow up --hosts 4 --devices 2 &            prints "worker 1 process PID" and "ready ADDRESS"
    PHX_FLOW=ADDRESS examples/flow/generate.py
    PHX_FLOW=ADDRESS examples/flow/generate.py --kill PID --kill-at 20

The trainer and each generator have a mesh of two devices. A round is one launch for each generator, whose argument is
the trainer's weights: they go from worker to worker. The trainer takes what the generators drew. When a device of a
generator is lost, the client sees it in that generator's values alone: it launches the generator again, whose mesh has
other devices by then, and the trainer keeps its weights. When a device of the trainer is lost, the round begins anew
from the weights that the client has fetched after the round before. Draws depend on the round, the generator and the
device's place, so that the rewards are those of an undisturbed run, and those of the same training on one device.

The policy is a table of logits by the token before; the reward is the share of tokens that follow theirs in a circle.
The gradient is that of REINFORCE with the mean reward as its baseline (Williams, 1992).
"""

import argparse
import os
import signal
import sys

import numpy

import phalanx.flow as flow
from phalanx.flow import P

GENERATORS, DEVICES = 2, 2  # DEVICES: of the trainer, and of each generator
TOKENS, LENGTH, SEQUENCES = 12, 10, 32  # SEQUENCES: of a device in a round
RATE = 8.0


# ---- what is traced ----


def draw(weights, seed, place):
    """Sequences of a device in the `place` of its mesh: int32 of (SEQUENCES, LENGTH + 1)."""
    state = flow.random.fold_in(flow.random.state(seed), place)
    state, start = flow.random.uniform(state, (SEQUENCES,), 0.0, TOKENS)
    tokens = [flow.floor(start).astype(flow.int32)]
    for _ in range(LENGTH):
        state, noise = flow.random.uniform(state, (SEQUENCES, TOKENS), 1e-6, 1.0)
        logits = flow.take(weights, tokens[-1])
        tokens.append(flow.argmax(logits - flow.log(-flow.log(noise)), -1).astype(flow.int32))  # Gumbel's way
    return flow.stack(tokens, 1)


def rewards_of(tokens):
    """The share of right tokens in each sequence."""
    right = tokens[:, 1:] == (tokens[:, :-1] + 1) % TOKENS
    return right.astype(flow.float32).mean(-1)


def learn(weights, tokens, average):
    """A step of the trainer; gives the weights and the mean reward."""
    rewards = rewards_of(tokens)
    reward = average(rewards.mean())

    def gain(weights):
        chances = flow.log_softmax(flow.take(weights, tokens[:, :-1]))
        chosen = (chances * flow.one_hot(tokens[:, 1:], TOKENS)).sum((-1, -2))
        return (chosen * flow.stop_gradient(rewards - reward)).mean()

    return weights + RATE * average(flow.grad(gain)(weights)), reward


# ---- the training ----


def seed_of(at, generator):
    return numpy.int32(1000 * at + generator)


def rewards_on_one_device(rounds):
    def step(weights, seeds):
        parts = [draw(weights, seeds[generator], place) for generator in range(GENERATORS) for place in range(DEVICES)]
        return learn(weights, flow.concatenate(parts), lambda found: found)

    run, weights, rewards = flow.jit(step), numpy.zeros((TOKENS, TOKENS), numpy.float32), []
    for at in range(rounds):
        weights, reward = run(weights, numpy.array([seed_of(at, each) for each in range(GENERATORS)]))
        rewards.append(reward)
    return [float(reward) for reward in flow.get(rewards)]


class Generator:
    """One generator: a mesh, and the function that draws."""

    def __init__(self, connection, number):
        self.number, self.repeated = number, 0
        self._draw = flow.shard_map(lambda weights, seed: draw(weights, seed, flow.axis_index("data")),
                                    mesh=connection.mesh(DEVICES, ("data",)), in_specs=(P(), P()), out_specs=P("data"))

    def launch(self, weights, at):
        return self._draw(weights, seed_of(at, self.number))

    def wait(self, tokens, weights, at):
        """The tokens, once they are drawn; a launch whose own devices were lost is repeated."""
        while True:
            try:
                return tokens.wait()
            except flow.DeviceLost as lost:
                self.repeated += 1
                print(f"round {at}: generator {self.number}: {lost.message}; it draws again", flush=True)
                tokens = self.launch(weights, at)


def train(step, trainer, generators, rounds, after_launch):
    """Runs the rounds; the mean reward of each, and how often a round began anew."""
    kept, rewards, again = numpy.zeros((TOKENS, TOKENS), numpy.float32), [], 0
    weights = flow.put(kept, trainer)
    while len(rewards) < rounds:
        at = len(rewards)
        parts = [generator.launch(weights, at) for generator in generators]
        after_launch(at)
        try:
            parts = [generator.wait(tokens, weights, at) for generator, tokens in zip(generators, parts)]
            weights, reward = step(weights, *parts)
            kept, reward = flow.get((weights, reward))
        except (flow.DeviceLost, flow.ArgumentFailed) as lost:
            again += 1
            print(f"round {at}: the trainer: {lost.message}; the round begins anew", flush=True)
            weights = flow.put(kept, trainer)
            continue
        rewards.append(float(reward))
        if (at + 1) % 10 == 0:
            print(f"round {at + 1}: reward {rewards[-1]:.3f}", flush=True)
    return rewards, again


def main():
    parser = argparse.ArgumentParser(description="trains a policy with two generators and a trainer")
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--kill", type=int, metavar="PID", help="a worker's process, to be killed in the middle")
    parser.add_argument("--kill-at", type=int, default=20, metavar="ROUND")
    options = parser.parse_args()
    connection = flow.connect(name="generate")
    trainer = connection.mesh(DEVICES, ("data",))
    generators = [Generator(connection, number) for number in range(GENERATORS)]
    step = flow.shard_map(lambda weights, *parts: learn(weights, flow.concatenate(parts),
                                                        lambda found: flow.pmean(found, "data")),
                          mesh=trainer, in_specs=(P(),) + (P("data"),) * GENERATORS, out_specs=(P(), P()))
    killed = []

    def kill(at):
        if options.kill and at >= options.kill_at and not killed:
            killed.append(at)
            os.kill(options.kill, signal.SIGKILL)
            print(f"round {at}: process {options.kill} is killed", flush=True)

    rewards, again = train(step, trainer, generators, options.rounds, kill)
    expected = rewards_on_one_device(options.rounds)
    worst = max(abs(a - b) for a, b in zip(rewards, expected))
    repeated = sum(generator.repeated for generator in generators)
    right = worst < 0.02 and rewards[-1] > 0.9
    print(f"reward {rewards[0]:.3f} to {rewards[-1]:.3f}, one device: {expected[-1]:.3f}, largest difference "
          f"{worst:.1e}; repeated: {repeated} launches, {again} rounds: {'right' if right else 'wrong'}", flush=True)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
