"""Writes typical Parquet files of texts: python3 make.py (pyarrow 25.0.1)."""

import pyarrow as pa
import pyarrow.parquet as pq

texts = [
    "Call me Ishmael.",
    "",
    "Été — 鯨 🐋",
    None,
    "line one\nline two\r\n",
    "the whale " * 40,
    "Call me Ishmael.",
]
table = pa.table(
    {
        "id": pa.array(range(len(texts)), pa.int64()),
        "text": pa.array(texts, pa.string()),
        "body": pa.array([text and text.upper() for text in texts], pa.large_string()),
        "tags": pa.array([["a", "b"], [], None, ["c"], [], [], []], pa.list_(pa.string())),
        "meta": pa.array([{"lang": "en", "words": 3}] * len(texts), pa.struct([("lang", pa.string()), ("words", pa.int32())])),
    }
)

for compression in ["none", "snappy", "gzip", "brotli", "zstd", "lz4"]:
    pq.write_table(table, f"{compression}.parquet", compression=compression, row_group_size=3)
pq.write_table(table, "plain.parquet", use_dictionary=False, data_page_version="2.0", row_group_size=5)
pq.write_table(
    table, "delta.parquet", use_dictionary=False, column_encoding={"text": "DELTA_BYTE_ARRAY", "body": "DELTA_LENGTH_BYTE_ARRAY"}
)
pq.write_table(table.slice(0, 0), "empty.parquet")
