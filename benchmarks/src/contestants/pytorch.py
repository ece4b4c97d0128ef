"""PyTorch on SKEIN_BENCH_THREADS threads (default: 1), or on a GPU with SKEIN_TORCH_DEVICE=cuda.

Reads and writes lines of JSON in the protocol of all contestants.
"""

import contextlib
import json
import os
import sys
import time

import numpy
import torch
from torch.nn import functional

CHECKED_STEPS = 5
DEVICE = os.environ.get("SKEIN_TORCH_DEVICE", "cpu")
MOST_CHECKED = 2**18
torch.set_num_threads(int(os.environ.get("SKEIN_BENCH_THREADS", "1")))


def settle():
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def sample(values):
    """Returns the elements that the harness compares, as in problems/sample.ts."""
    flat = values.flatten().float()
    if flat.numel() <= MOST_CHECKED:
        return flat.tolist()
    step = 2 * -(-flat.numel() // MOST_CHECKED // 32) * 16 + 1
    return flat[::step][:4096].tolist()


def read_problem(folder):
    with open(os.path.join(folder, "manifest.json")) as file:
        problem = json.load(file)
    values = {}
    for tensor in problem["tensors"]:
        dtype = numpy.int32 if tensor["dtype"] == "i32" else numpy.float32
        data = numpy.fromfile(os.path.join(folder, tensor["name"] + ".raw"), dtype=dtype)
        values[tensor["name"]] = torch.from_numpy(data.reshape(tensor["shape"])).to(DEVICE)
    return problem, values


def permute(values):
    """Permutes from NHWC, HWIO and [in, out] to NCHW, OIHW and [out, in]."""
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


def language_model(sizes, params, tokens):
    batch, positions, width, heads = (sizes[name] for name in ("batch", "positions", "width", "heads"))

    def norm(x, gain):
        return functional.layer_norm(x, (width,), params[gain])

    def split(x):
        return x.view(batch, positions, heads, width // heads).transpose(1, 2)

    def attend(q, k, v):
        if hasattr(functional, "scaled_dot_product_attention"):
            return functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        scores = q @ k.transpose(-1, -2) / (width // heads) ** 0.5
        mask = torch.ones(positions, positions, dtype=torch.bool, device=q.device).triu(1)
        return scores.masked_fill(mask, float("-inf")).softmax(-1) @ v

    x = functional.embedding(tokens, params["weightEmbedding"]) + params["weightPositions"]
    for layer in range(sizes["layers"]):
        h = norm(x, f"gain{layer}Attention")
        q, k, v = (split(h @ params[f"weight{layer}{name}"]) for name in ("Query", "Key", "Value"))
        y = attend(q, k, v).transpose(1, 2).reshape(batch, positions, width)
        x = x + y @ params[f"weight{layer}Output"]
        up = norm(x, f"gain{layer}FeedForward") @ params[f"weight{layer}Up"]
        x = x + functional.gelu(up, approximate="tanh") @ params[f"weight{layer}Down"]
    return norm(x, "gainFinal") @ params["weightEmbedding"].t()


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
        dtype = torch.float16 if problem.get("precision") == "f16" else torch.float32
        a, b = values["a"].to(dtype), values["b"].to(dtype)

        def multiply():
            torch.mm(a, b)
            settle()

        return sample(torch.mm(a, b)), multiply
    sizes = problem.get("gpt")
    if sizes is None:
        values = permute(values)
    inputs, labels = values.pop("images" if sizes is None else "tokens"), values.pop("labels").long()
    mixed = problem.get("precision") == "mixed-f16"
    scaler = torch.cuda.amp.GradScaler(enabled=mixed)  # does nothing where it is not enabled
    params = {name: value.requires_grad_() for name, value in values.items()}
    optimizer = torch.optim.SGD(params.values(), lr=problem["learningRate"])

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(DEVICE, dtype=torch.float16) if mixed else contextlib.nullcontext():
            logits = network(params, inputs) if sizes is None else language_model(sizes, params, inputs)
            loss = functional.cross_entropy(logits.flatten(0, -2), labels.flatten())
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss.item()

    return [step() for _ in range(CHECKED_STEPS)], step


def version():
    """Returns PyTorch's version, and the BLAS library that the dynamic loader chose, or the GPU."""
    if DEVICE == "cuda":
        return torch.__version__ + " on " + torch.cuda.get_device_name()
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
