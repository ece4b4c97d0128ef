"""In-place f32 all-reduces between processes over loopback by PyTorch's Gloo, called from Python. Each time includes the
dispatch of the call from Python and the hand-over to a thread of PyTorch. Prints lines of JSON like open-mpi.c.

python3 gloo.py --ranks 2 4096:1000 1048576:200
"""

import argparse
import json
import os
import tempfile
import time

import torch
import torch.distributed as distributed
import torch.multiprocessing as multiprocessing


def validate(values, rank, world_size):
    places = torch.arange(values.numel()) % 7
    values.copy_(places + rank)
    distributed.all_reduce(values)
    expected = (places * world_size + world_size * (world_size - 1) // 2).to(torch.float32)
    wrong = torch.nonzero(values != expected)
    if len(wrong) > 0:
        at = int(wrong[0])
        raise RuntimeError(f"rank {rank}: element {at} of {values.numel()} is {values[at]} instead of {expected[at]}")


def run(rank, world_size, store, sizes):
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=world_size)
    if rank == 0:
        print(json.dumps({"processors": len(os.sched_getaffinity(0)), "of": os.cpu_count()}), flush=True)
    for size, samples in sizes:
        values = torch.empty(size // 4, dtype=torch.float32)
        validate(values, rank, world_size)
        values.zero_()
        for _ in range(max(10, samples // 5)):
            distributed.all_reduce(values)
        taken = torch.empty(samples, dtype=torch.float64)
        for i in range(samples):
            distributed.barrier()
            begin = time.perf_counter()
            distributed.all_reduce(values)
            taken[i] = (time.perf_counter() - begin) * 1e6
        validate(values, rank, world_size)
        distributed.all_reduce(taken, op=distributed.ReduceOp.MAX)
        if rank == 0:
            print(json.dumps({"bytes": size, "microseconds": taken.tolist()}), flush=True)
    distributed.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("sizes", nargs="+")
    arguments = parser.parse_args()
    sizes = [tuple(int(number) for number in size.split(":")) for size in arguments.sizes]
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    with tempfile.TemporaryDirectory() as folder:
        multiprocessing.spawn(run, (arguments.ranks, os.path.join(folder, "store"), sizes), arguments.ranks)
