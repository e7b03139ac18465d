#!/usr/bin/env python3
"""The example of examples/train in PyTorch: DistributedDataParallel over gloo, on python/phalanx.

Learns a text with a small character-level transformer. Killed and started again, it goes on from the newest
checkpoint that all ranks have saved. Exit status: 0 done, 75 another rank is lost or this attempt is over, 77
skipped (no torch).
"""

import argparse
import hashlib
import io
import os
import sys

try:
    import torch
    import torch.distributed as dist
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel
except ImportError:
    print("skipped: PyTorch is not installed (on Debian: apt install python3-torch)", file=sys.stderr)
    sys.exit(77)

import phalanx

EXIT_AGAIN = 75
CONTEXT = 32


class Block(nn.Module):
    """Causal attention and a perceptron, each behind a normalisation."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.perceptron = nn.Sequential(nn.Linear(width, 4 * width), nn.ReLU(), nn.Linear(4 * width, width))
        self.register_buffer("mask", torch.full((CONTEXT, CONTEXT), float("-inf")).triu(1), persistent=False)

    def forward(self, x):
        y = self.norm1(x)
        x = x + self.attention(y, y, y, attn_mask=self.mask, need_weights=False)[0]
        return x + self.perceptron(self.norm2(x))


class Model(nn.Module):
    """A character-level language model."""

    def __init__(self, vocabulary: int, width: int = 32, heads: int = 4, layers: int = 2):
        super().__init__()
        self.token = nn.Embedding(vocabulary, width)
        self.position = nn.Parameter(torch.zeros(CONTEXT, width))
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)
        self.out = nn.Linear(width, vocabulary)

    def forward(self, symbols):
        return self.out(self.norm(self.blocks(self.token(symbols) + self.position)))


def load_text(path: str):
    """The text as symbols, and how many different ones there are."""
    with open(path, "rb") as file:
        data = file.read()
    symbols = sorted(set(data))
    numbers = {byte: number for number, byte in enumerate(symbols)}
    return torch.tensor([numbers[byte] for byte in data]), len(symbols)


def pick_batch(text, seed: int, step: int, batch: int, rank: int, world: int):
    """This rank's part of the step's batch: a function of its arguments alone, so a restart sees the same."""
    generator = torch.Generator().manual_seed(seed * 1_000_003 + step)
    starts = torch.randint(len(text) - CONTEXT, (batch,), generator=generator)[rank::world]
    rows = torch.stack([text[start : start + CONTEXT + 1] for start in starts.tolist()])
    return rows[:, :-1], rows[:, 1:]


def pack(model, optimizer) -> bytes:
    """The state as bytes."""
    file = io.BytesIO()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
    return file.getvalue()


def weights_hash(model) -> str:
    """Of all weights, to the last bit."""
    digest = hashlib.sha256()
    for tensor in model.state_dict().values():
        digest.update(tensor.numpy().tobytes())
    return digest.hexdigest()[:16]


def train(job: phalanx.Job, options):
    """All steps from the newest checkpoint to the last; the last loss and the model."""
    torch.manual_seed(options.seed)
    torch.set_num_threads(1)
    text, vocabulary = load_text(options.text)
    model = Model(vocabulary)
    optimizer = torch.optim.Adam(model.parameters(), lr=options.rate)
    step, loss_value, noticed = 0, float("nan"), False
    saved = job.checkpoint_restore()
    if saved is not None:
        state = torch.load(io.BytesIO(saved.data), map_location="cpu")
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        step = saved.step
        if job.rank == 0:
            print(f"attempt {job.attempt} goes on from step {step}", flush=True)
    # Without find_unused_parameters DDP arranges its buckets anew after the first step of each run, and sums
    # in another order round differently: a restarted run would end with other weights than a quiet one.
    parallel = DistributedDataParallel(model, find_unused_parameters=True)
    job.set_total_steps(options.steps)
    job.step(step)
    while step < options.steps:
        inputs, targets = pick_batch(text, options.seed, step, options.batch, job.rank, job.world_size)
        loss = nn.functional.cross_entropy(parallel(inputs).flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        shared = torch.tensor([loss.item(), float(job.notice() is not None)])
        dist.all_reduce(shared)  # the mean loss, and whether any rank was told to expect its end
        loss_value, any_noticed = shared[0].item() / job.world_size, shared[1].item() > 0
        step += 1
        job.step(step, loss=loss_value)
        if step % options.checkpoint_every == 0 or step == options.steps or (any_noticed and not noticed):
            job.checkpoint_save(step, pack(model, optimizer))
        noticed = noticed or any_noticed
        if job.rank == 0 and step % 20 == 0:
            print(f"step {step}/{options.steps} loss {loss_value:.4f}", flush=True)
    return loss_value, model


def make_parser(about: str) -> argparse.ArgumentParser:
    """What every way to train can be told."""
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("--text", default="/usr/share/common-licenses/GPL-3", help="learn from this file")
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--batch", type=int, default=160, help="sequences per step, over all ranks together")
    parser.add_argument("--rate", type=float, default=0.003, help="learning rate")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--checkpoint-every", type=int, default=20, help="steps between checkpoints in storage")
    return parser


def say_result(steps: int, loss: float, model):
    print(f"final step {steps} loss {loss:.6f} weights-hash {weights_hash(model)}", flush=True)


def end_process(status: int):
    """gloo's threads may wait for a lost peer; the process must not."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def main() -> int:
    options = make_parser(__doc__).parse_args()
    job = phalanx.join()
    try:
        os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
        os.environ.setdefault("MASTER_PORT", "29500")
        dist.init_process_group("gloo", rank=job.rank, world_size=job.world_size)
        loss, model = train(job, options)
        job.barrier(timeout=60)
        if job.rank == 0:
            say_result(options.steps, loss, model)
        dist.destroy_process_group()
        job.leave()
        return 0
    except (phalanx.PeerLostError, phalanx.FencedError, RuntimeError) as error:
        print(f"train: {error}", file=sys.stderr)
        try:
            job.check()  # gloo says only that a connection broke; libphalanx knows whether a rank is lost
        except phalanx.PhalanxError as reason:
            print(f"train: {reason}", file=sys.stderr)
            return EXIT_AGAIN
        return 1


if __name__ == "__main__":
    end_process(main())
