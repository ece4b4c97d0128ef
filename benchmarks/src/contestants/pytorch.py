"""PyTorch on one thread: the same protocol as the other contestants, lines of JSON in and out."""

import json
import os
import sys
import time

import numpy
import torch
from torch.nn import functional

CHECKED_STEPS = 5
torch.set_num_threads(1)


def read_problem(folder):
    with open(os.path.join(folder, "manifest.json")) as file:
        problem = json.load(file)
    values = {}
    for tensor in problem["tensors"]:
        dtype = numpy.int32 if tensor["dtype"] == "i32" else numpy.float32
        data = numpy.fromfile(os.path.join(folder, tensor["name"] + ".raw"), dtype=dtype)
        values[tensor["name"]] = torch.from_numpy(data.reshape(tensor["shape"]))
    return problem, values


def permute(values):
    """From NHWC, HWIO and [in, out] to NCHW, OIHW and [out, in]."""
    result = {}
    for name, value in values.items():
        if name == "images" and value.dim() == 4:
            value = value.permute(0, 3, 1, 2)
        elif name.startswith("weight") and value.dim() == 4:
            value = value.permute(3, 2, 0, 1)
        elif name == "weight3" and "weight4" in values:
            value = value.reshape(7, 7, 64, 128).permute(3, 2, 0, 1).reshape(128, -1)
        elif name.startswith("weight"):
            value = value.t()
        result[name] = value.contiguous()
    return result


def network(params, images):
    if "weight4" not in params:
        x = functional.relu(functional.linear(images, params["weight1"], params["bias1"]))
        x = functional.relu(functional.linear(x, params["weight2"], params["bias2"]))
        return functional.linear(x, params["weight3"], params["bias3"])
    x = images
    for layer in ("1", "2"):
        x = functional.max_pool2d(functional.relu(functional.conv2d(x, params["weight" + layer], params["bias" + layer], padding=1)), 2)
    x = functional.relu(functional.linear(x.flatten(1), params["weight3"], params["bias3"]))
    return functional.linear(x, params["weight4"], params["bias4"])


def prepare(folder):
    problem, values = read_problem(folder)
    if problem["kind"] == "matmul":
        a, b = values["a"], values["b"]
        return torch.mm(a, b).flatten().tolist(), lambda: torch.mm(a, b)
    values = permute(values)
    images, labels = values.pop("images"), values.pop("labels").long()
    params = {name: value.requires_grad_() for name, value in values.items()}
    optimizer = torch.optim.SGD(params.values(), lr=problem["learningRate"])

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = functional.cross_entropy(network(params, images), labels)
        loss.backward()
        optimizer.step()
        return loss.item()

    return [step() for _ in range(CHECKED_STEPS)], step


def version():
    """PyTorch's version and the BLAS library that the loader really took."""
    with open("/proc/self/maps") as file:
        libraries = sorted({line.split("/")[-1].strip() for line in file if "blas" in line.split("/")[-1]})
        file.seek(0)
        openblas = any("openblas" in line and "/libblas" in line for line in file)
    return torch.__version__ + (" with OpenBLAS" if openblas else " with " + " ".join(libraries or ["an unnamed BLAS"]))


def measure(run, seconds, iterations):
    milliseconds = []
    end = time.perf_counter() + seconds
    while len(milliseconds) < iterations or time.perf_counter() < end:
        start = time.perf_counter()
        run()
        milliseconds.append((time.perf_counter() - start) * 1000)
    return milliseconds


def main():
    run = None
    for line in iter(sys.stdin.readline, ""):
        request = json.loads(line)
        try:
            if request["command"] == "prepare":
                checks, run = prepare(request["folder"])
                reply = {"ok": True, "version": version(), "checks": checks}
            else:
                reply = {"ok": True, "milliseconds": measure(run, request["seconds"], request["iterations"])}
        except Exception as error:  # a failure is an answer too, with the library's own words
            reply = {"ok": False, "error": str(error)}
        print("\n@" + json.dumps(reply), flush=True)


main()
