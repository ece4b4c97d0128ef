"""Runs the decompositions of decomposition.bench.ts with PyTorch on one thread.

Input: a line "NAME SIZE", followed by the bytes of the matrix, selects a decomposition. A line "COUNT" runs the
decomposition COUNT times, and prints the milliseconds per run.
"""

import sys
import time

import numpy
import torch

torch.set_num_threads(1)

DECOMPOSITIONS = {
    "eigh": torch.linalg.eigh,
    "qr": torch.linalg.qr,
    "cholesky": torch.linalg.cholesky,
    "inverse": lambda a: torch.cholesky_inverse(torch.linalg.cholesky(a)),
}

print(torch.__version__, flush=True)
for line in sys.stdin.buffer:
    words = line.split()
    if len(words) == 2:
        decompose, size = DECOMPOSITIONS[words[0].decode()], int(words[1])
        values = numpy.frombuffer(sys.stdin.buffer.read(4 * size * size), dtype=numpy.float32)
        matrix = torch.from_numpy(values.reshape(size, size).copy())
    else:
        count = int(words[0])
        begin = time.perf_counter()
        for _ in range(count):
            decompose(matrix)
        print((time.perf_counter() - begin) * 1e3 / count, flush=True)
