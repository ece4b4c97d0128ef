"""Train an MLP and a GPT in f32, under PyTorch's bf16 autocast on the CPU, and with products between casts, and write
bf16-from-pytorch.json next to this file: the loss before each step of SGD, and one product with its gradients.

PyTorch 1.13 without oneDNN, as in Debian, also accumulates in bf16. Processors and GPUs that multiply bf16 accumulate
in f32; so do products of rounded operands between casts, `wide` below.

Initial weights and samples are given by the formulas below, which bf16-from-pytorch.test.ts also uses. Needs PyTorch 1.13 or
later (Debian: python3-torch). The test needs only the JSON.
"""

import json
import pathlib

import torch
import torch.nn.functional as F


def wide(a, b):
    """A product as in autocast, accumulated in f32. Its gradients are also such products."""
    return (a.bfloat16().float() @ b.bfloat16().float()).bfloat16().float()


multiply = torch.matmul


def whole(count, seed):
    """Returns pseudorandom integers from 0 to 10006."""
    return [(7919 * i + 104729 * seed + 31 * (i * i % 10007)) % 10007 for i in range(count)]


def real(shape, seed, scale):
    """Returns pseudorandom numbers from -scale to scale."""
    count = 1
    for size in shape:
        count *= size
    values = [(2 * value / 10006 - 1) * scale for value in whole(count, seed)]
    return torch.tensor(values, dtype=torch.float64).to(torch.float32).reshape(shape)


def tokens(shape, seed, vocabulary):
    count = shape[0] * shape[1]
    return torch.tensor([value % vocabulary for value in whole(count, seed)]).reshape(shape)


mlp_sizes = [12, 32, 32, 5]


def mlp_params():
    return {
        f"layers.{i}": (
            real([mlp_sizes[i], mlp_sizes[i + 1]], 10 + i, (6 / mlp_sizes[i]) ** 0.5),
            real([mlp_sizes[i + 1]], 20 + i, 0.1),
        )
        for i in range(3)
    }


def mlp_loss(params, x, labels):
    for i in range(3):
        weight, bias = params[f"layers.{i}"]
        x = multiply(x, weight) + bias
        if i < 2:
            x = F.relu(x)
    return F.cross_entropy(x.float(), labels)


vocabulary, length, width, layers, heads = 24, 12, 16, 2, 2


def gpt_params():
    params = {
        "embedding": (real([vocabulary, width], 30, 0.5),),
        "positions": (real([length, width], 31, 0.5),),
        "final": (torch.ones(width), torch.zeros(width)),
    }
    for layer in range(layers):
        at = 40 + 10 * layer
        square = [real([width, width], at + k, 0.4) for k in range(4)]
        ends = [real([width, 4 * width], at + 4, 0.4), real([4 * width, width], at + 5, 0.2)]
        norms = [torch.ones(width), torch.zeros(width), torch.ones(width), torch.zeros(width)]
        params[f"blocks.{layer}"] = (*square, *ends, *norms)
    return params


def attend(q, k, v):
    """The bf16 operators of torch.nn.functional's fused attention: two products with a softmax in f32 between them."""
    split = lambda t: t.reshape(t.shape[0], length, heads, width // heads).transpose(1, 2)
    scores = multiply(split(q), split(k).transpose(-1, -2)).float() / (width // heads) ** 0.5
    hidden = torch.ones(length, length, dtype=torch.bool).triu(1)
    y = multiply(F.softmax(scores.masked_fill(hidden, float("-inf")), -1), split(v))
    return y.transpose(1, 2).reshape(q.shape)


def gpt_loss(params, x, labels):
    (embedding,), (positions,) = params["embedding"], params["positions"]
    norm = lambda h, gain, shift: F.layer_norm(h.float(), [width], gain, shift, 1e-5)
    h = F.embedding(x, embedding) + positions
    for layer in range(layers):
        query, key, value, output, up, down, gain1, shift1, gain2, shift2 = params[f"blocks.{layer}"]
        own = norm(h, gain1, shift1)
        h = h + multiply(attend(*(multiply(own, matrix) for matrix in (query, key, value))), output)
        h = h + multiply(F.gelu(multiply(norm(h, gain2, shift2), up)), down)
    logits = multiply(norm(h, *params["final"]), embedding.t())
    return F.cross_entropy(logits.float().reshape(-1, vocabulary), labels.reshape(-1))


def train(params, loss_of, batch, rate, steps, kind):
    global multiply
    multiply = wide if kind == "casts" else torch.matmul
    leaves = [leaf.requires_grad_() for tensors in params.values() for leaf in tensors]
    losses = []
    for _ in range(steps):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=kind == "autocast"):
            loss = loss_of(params, *batch)
        losses.append(loss.item())
        gradients = torch.autograd.grad(loss, leaves)
        with torch.no_grad():
            for leaf, gradient in zip(leaves, gradients):
                leaf -= rate * gradient
    return losses


def product():
    x, weight = real([6, 40], 60, 2).requires_grad_(), real([40, 5], 61, 2).requires_grad_()
    factors = real([6, 5], 62, 1)
    y = wide(x, weight)
    gradients = torch.autograd.grad((y * factors).sum(), [x, weight])
    return {name: t.detach().flatten().tolist() for name, t in zip("y x weight".split(), [y, *gradients])}


steps = 20
samples = tokens([8, length + 1], 5, vocabulary)
problems = {
    "mlp": (mlp_params, mlp_loss, (real([16, 12], 1, 2), torch.tensor(whole(16, 2)) % 5), 0.1),
    "gpt": (gpt_params, gpt_loss, (samples[:, :-1].contiguous(), samples[:, 1:].contiguous()), 0.05),
}
results = {
    name: {
        "rate": rate,
        **{
            kind: train(params(), loss_of, batch, rate, steps, kind)
            for kind in ("f32", "autocast", "casts")
        },
    }
    for name, (params, loss_of, batch, rate) in problems.items()
}
path = pathlib.Path(__file__).parent / "bf16-from-pytorch.json"
path.write_text(json.dumps({"torch": torch.__version__, "product": product(), **results}, indent=1) + "\n")
