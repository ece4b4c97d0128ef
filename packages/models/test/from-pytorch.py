"""Run the PyTorch column of docs/guides/from-pytorch.md and write from-pytorch.json and from-pytorch-hard.json next to this file: inputs, results and gradients, in Skein's layout.

Needs PyTorch 1.13 or later (Debian: python3-torch). The tests need only the JSON.
"""

import json
import math
import pathlib
import re

import torch
import torch.nn.functional as F

here = pathlib.Path(__file__).parent
page = (here / "../../../docs/guides/from-pytorch.md").resolve().read_text()


def numbers(shape, seed):
    """Returns distinct multiples of 1/4 from -6 to 6 for up to 50 entries, exact in every float type."""
    count = 1
    for size in shape:
        count *= size
    return torch.tensor([((37 * i + seed) % 101 - 50) / 8 for i in range(count)]).reshape(shape)


def whole(values, dtype=torch.int64):
    return torch.tensor(values, dtype=dtype)


kernel, line, picture, sequence = (3, 2, 0, 1), (2, 1, 0), (0, 3, 1, 2), (0, 2, 1)

# Name: value in Skein's layout, and the permutation to PyTorch's layout.
inputs = {
    "x": (numbers([2, 3], 1), None),
    "y": (numbers([2, 3], 5), None),
    "t": (numbers([2, 3, 4], 9), None),
    "m": (numbers([3, 4], 11), None),
    "v": (numbers([3], 13), None),
    "positive": (numbers([2, 3], 17).abs() + 0.25, None),
    "mask": (whole([[1, 0, 1], [0, 0, 1]], torch.bool), None),
    "logits": (numbers([4, 5], 19), None),
    "labels": (whole([1, 4, 0, 2]), None),
    "labelsOrNot": (whole([1, -100, 0, -100]), None),
    "tokens": (whole([[6, 0, 2], [2, 5, 1]]), None),
    "picks": (whole([2, 0]), None),
    "table": (numbers([7, 3], 23), None),
    "images": (numbers([2, 5, 6, 4], 29), picture),
    "sequences": (numbers([2, 7, 4], 31), sequence),
    "w": (numbers([3, 3, 4, 6], 37), kernel),
    "wGrouped": (numbers([3, 3, 2, 6], 41), kernel),
    "wBack": (numbers([3, 3, 2, 4], 43), kernel),
    "w1": (numbers([3, 4, 6], 47), line),
    "wBack1": (numbers([3, 2, 4], 53), line),
    "dense43": (numbers([3, 4], 59), (1, 0)),
    "bias": (numbers([6], 61), None),
    "bias4": (numbers([4], 67), None),
    "gamma": (numbers([4], 71), None),
    "beta": (numbers([4], 73), None),
}
there = {name: value if order is None else value.permute(order).contiguous() for name, (value, order) in inputs.items()}


def number(entry):
    """Writes NaN and infinities as strings, because JSON does not support them."""
    if not isinstance(entry, float):
        return int(entry)
    if math.isfinite(entry):
        return float(f"{entry:.8g}")
    return "NaN" if math.isnan(entry) else "Infinity" if entry > 0 else "-Infinity"


def written(value):
    kinds = {torch.float32: "f32", torch.int64: "i32", torch.int32: "i32", torch.bool: "bool"}
    flat = value.reshape(-1).tolist()
    return {
        "dtype": kinds[value.dtype],
        "shape": list(value.shape),
        "values": [number(entry) for entry in flat],
    }


results = {}
for part in page.split("\n## ")[1:]:
    if part.startswith("Programs"):
        continue
    for code in re.findall(r"^\| `(.*?)` \| `", part, flags=re.M):
        value = eval(code, {"torch": torch, "F": F, **there})
        leaves = list(value) if isinstance(value, tuple) else [value]
        if re.search(r"\b(images|sequences)\b", code):
            back = {4: (0, 2, 3, 1), 3: (0, 2, 1)}
            leaves = [leaf.permute(back[leaf.dim()]) if leaf.dim() in back else leaf for leaf in leaves]
        results[code] = [written(leaf) for leaf in leaves]

# Values and gradients at hard points: zeros and ties, infinities, NaN. The tests list the rows that differ.
inf, nan = float("inf"), float("nan")


def repeated(shape, entries):
    count = 1
    for size in shape:
        count *= size
    return torch.tensor([entries[i % len(entries)] for i in range(count)]).reshape(shape)


hardEntries = {
    "zeros": {name: [0.0] for name in ["x", "y", "t", "m", "v", "positive", "logits"]},
    "ties": {
        "x": [1.0, 1.0, -1.0, 0.0, 2.0, 2.0], "y": [1.0, -1.0, -1.0, 0.0, 3.0, 2.0], "t": [1.0, 1.0, 0.0, 2.0, 2.0],
        "m": [0.0, 1.0], "v": [1.0, 1.0, 0.0], "positive": [1.0], "logits": [1.0, 1.0, 3.0, 3.0, 0.0],
    },
    "infinities": {
        "x": [-inf, 0.0, 1.0, 2.0, inf, -1.0], "y": [0.0, 1.0, inf, -inf, 2.0, -1.0], "t": [1.0, -inf, 0.0, 2.0, 5.0],
        "positive": [0.0, inf, 1.0], "logits": [-inf, 1.0, 0.0, 2.0, 3.0, 1.0],
    },
    "NaN": {
        "x": [nan, 0.0, 1.0, 2.0, 3.0, nan], "y": [0.0, nan, 1.0, 2.0, -1.0, nan], "t": [1.0, nan, 0.0, 2.0, 5.0],
        "positive": [nan, 1.0], "logits": [nan, 1.0, 0.0, 2.0, 3.0, 1.0, 4.0],
    },
}
hardSections = ("Elementwise", "Reductions and order", "Products", "Indexing", "Losses")
hard = {}
for name, entries in hardEntries.items():
    own = {key: repeated(inputs[key][0].shape, values) for key, values in entries.items()}
    rows = {}
    for part in page.split("\n## ")[1:]:
        if not part.startswith(hardSections):
            continue
        for code in re.findall(r"^\| `(.*?)` \| `", part, flags=re.M):
            names = [key for key in own if re.search(rf"\b{key}\b", code)]
            if not names or re.search(r"cholesky|eigh|qr", code):
                continue
            values = {**there, **{key: value.clone().requires_grad_() for key, value in own.items()}}
            value = eval(code, {"torch": torch, "F": F, **values})
            leaves = list(value) if isinstance(value, tuple) else [value]
            row = {"values": [written(leaf.detach()) for leaf in leaves]}
            floats = [leaf for leaf in leaves if leaf.requires_grad]
            if floats:
                weights = [repeated(leaf.shape, [1.0, -2.0, 0.5]) for leaf in floats]
                wanted = [values[key] for key in names]
                found = torch.autograd.grad(floats, wanted, weights, allow_unused=True)
                row["gradients"] = {
                    key: written(torch.zeros_like(values[key]) if gradient is None else gradient)
                    for key, gradient in zip(names, found)
                }
            rows[code] = row
    hard[name] = {"inputs": {key: written(value) for key, value in own.items()}, "rows": rows}
out = {"torch": torch.__version__, "hard": hard}
(here / "from-pytorch-hard.json").write_text(json.dumps(out) + "\n")

out = {"torch": torch.__version__, "inputs": {name: written(value) for name, (value, _) in inputs.items()}, "results": results}
(here / "from-pytorch.json").write_text(json.dumps(out) + "\n")
print(len(results), "rows")
