"""A rank of a torch DDP job for torchrun and Slurm as peers: a tiny model, 50 ms a step, and no state to restore.

Each step is a record of 24 bytes at the end of the file named by STAMPS: the time (CLOCK_MONOTONIC in nanoseconds),
attempt and rank (32 bits each), process.
"""
import os
import struct
import time

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank, attempt = dist.get_rank(), int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(16, 16))
with open(os.environ["STAMPS"], "ab", 0) as stamps:
    while True:
        model(torch.ones(4, 16)).sum().backward()
        stamps.write(struct.pack("=qIIQ", time.monotonic_ns(), attempt, rank, os.getpid()))
        time.sleep(0.05)
