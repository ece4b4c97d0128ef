"""Writes small arrays of all supported and some unsupported types with NumPy 2.4: `python3 make.py`."""

import io
import json
import zipfile
from pathlib import Path

import numpy as np
from numpy.lib import format as npy

here = Path(__file__).parent
plain = np.arange(24).reshape(4, 3, 2)

arrays = {}
for order in "<>":
    for kind in ["f2", "f4", "f8", "i2", "i4", "i8", "u2", "u4", "u8"]:
        arrays[f"{'little' if order == '<' else 'big'}-{kind}"] = (plain * (1 if kind[0] == "u" else -1)).astype(order + kind)
arrays["u1"] = (plain * 10).astype("u1")
arrays["i1"] = (-plain).astype("i1")
arrays["bool"] = plain % 3 == 0
arrays["fortran"] = np.asfortranarray(plain.astype("f4"))
arrays["fortran-flat"] = np.asfortranarray(plain.reshape(24, 1).astype("i4"))
arrays["scalar"] = np.array(7.5)
arrays["empty"] = np.zeros((0, 3))
arrays["long"] = np.zeros([1] * 24, "f4")

# one file with all arrays, named by the expected result
np.savez_compressed(here / "kinds.npz", **arrays)
(here / "kinds.json").write_text(json.dumps({name: array.tolist() for name, array in arrays.items()}, indent=None) + "\n")
np.savez(here / "stored.npz", x_train=plain.astype("f8"), y_train=np.array([0, 1, 2, 1]))

for version in [(1, 0), (2, 0), (3, 0)]:
    with open(here / f"version-{version[0]}.npy", "wb") as file:
        npy.write_array(file, plain.astype("<i4"), version=version)

refused = {
    "objects": np.array([{"a": 1}, None], dtype=object),
    "strings": np.array(["cat", "dog"]),
    "bytes": np.array([b"cat"]),
    "complex": np.array([1j]),
    "records": np.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")]),
    "dates": np.array(["2020-01-01"], dtype="M8[D]"),
    "long-doubles": np.array([1], dtype=np.longdouble),
}
np.savez(here / "refused.npz", **refused)

# a ZIP64 archive, as for entries above 4 GiB
with zipfile.ZipFile(here / "zip64.npz", "w", zipfile.ZIP_DEFLATED) as archive:
    for name, array in {"x_train": plain, "y_train": np.array([1, 0, 1, 0])}.items():
        data = io.BytesIO()
        np.save(data, array)
        with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
            entry.write(data.getvalue())
