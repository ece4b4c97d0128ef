#!/bin/bash
# Writes WebDataset shards with GNU tar 1.34 and Python's tarfile: bash make.sh; needs the images of ../images.
set -e
cd "$(dirname "$0")"
work=$(mktemp -d)
python3 - "$work" <<'P'
import struct, sys, zlib, os

def png(path, value):
    """Returns an image of 2×2 gray pixels of one value."""
    raw = b"".join(b"\0" + bytes([value] * 2) for _ in range(2))
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 2, 2, 8, 0, 0, 0, 0))
                   + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b""))

work = sys.argv[1]
long = "deep/" * 25 + "été-" + "x" * 60
for i in range(8):
    key = f"{work}/{i:03d}" if i < 7 else f"{work}/{long}"
    os.makedirs(os.path.dirname(key), exist_ok=True)
    png(key + ".png", 20 * i)
    open(key + ".cls", "w").write(f"{i % 3}\n")
    open(key + ".json", "w").write('{"label": "%s", "id": %d}' % (["cat", "dog", "fox"][i % 3], i))
P
files=$(cd "$work" && find . -type f | sed 's,^\./,,' | LC_ALL=C sort)
all() { tar --owner=0 --group=0 --mtime=@0 -b1 -C "$work" "$@" $files; }
all --format=gnu -cf gnu.tar
all --format=pax --pax-option=delete=atime,delete=ctime -cf pax.tar
# ustar has no room for the long name
tar --owner=0 --group=0 --mtime=@0 -b1 -C "$work" --format=ustar -cf ustar.tar $(echo "$files" | grep '^0')
tar --owner=0 --group=0 --mtime=@0 -b1 -C "$work" --format=v7 -cf v7.tar $(echo "$files" | grep '^0')
ln -s 000.png "$work/link.png"
mkdir "$work/folder"
tar --owner=0 --group=0 --mtime=@0 -b1 -C "$work" -cf others.tar folder link.png 000.png 000.cls 001.png 002.png 002.cls
rm -r "$work"
