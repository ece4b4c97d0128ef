"""Writes the images of ../images to Parquet in the layout of Hugging Face data sets: python3 make.py (pyarrow 25.0.1)."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

here = Path(__file__).parent
images = here.parent / "images"
image_type = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
features = {
    "image": {"_type": "Image"},
    "label": {"names": ["cat", "dog", "owl"], "_type": "ClassLabel"},
}


def write(name, rows, metadata=features, label_type=pa.int64(), **options):
    table = pa.table(
        {
            "id": pa.array(range(len(rows)), pa.int32()),
            "image": pa.array([image for image, _ in rows], image_type),
            "label": pa.array([label for _, label in rows], label_type),
        }
    )
    if metadata is not None:
        table = table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": metadata}})})
    pq.write_table(table, here / f"{name}.parquet", row_group_size=3, **options)


def row(name, label):
    return ({"bytes": (images / name).read_bytes(), "path": name}, label)


rows = [
    row("plain.jpg", 0),
    row("plain.png", 1),
    row("turned.jpg", 2),
    row("grey.jpg", 0),
    row("plain.webp", 1),
    row("palette.gif", 2),
    row("plain.jpg", 1),
]
write("train-00000-of-00002", rows[:4])
write("train-00001-of-00002", rows[4:], compression="zstd")
write("test-00000-of-00001", [row("plain.png", 0), row("grey.jpg", 2)])
write("named", [(image, ["red", "blue", "red"][label]) for image, label in rows], metadata=None, label_type=pa.string())
write("unlabelled", [*rows[:5], row("plain.jpg", -1), row("plain.jpg", None), (None, 1)])
write("linked", [({"bytes": None, "path": "somewhere/else.jpg"}, 0), *rows])
plain = pa.table({"image": pa.array([image["bytes"] for image, _ in rows], pa.binary()), "label": [7, 8] * 3 + [7]})
pq.write_table(plain, here / "plain.parquet")
