import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { mnistFiles } from "../src/index.ts";
import {
  haveFields,
  loadDocuments,
  loadFashionMnist,
  loadIdx,
  loadImageFolder,
  loadImageManifest,
  loadImageShards,
  loadMnist,
  loadNumpy,
  loadText,
  loadTokenFile,
  loadTokenizer,
  openImageFolder,
  openTextStream,
  openTokenFile,
  readManifest,
  trainTokenizer,
} from "../src/node.ts";
import { textReader } from "../src/node/streams/read-texts.ts";

const base = mkdtempSync(join(tmpdir(), "skein-foreign-"));
afterAll(() => rmSync(base, { recursive: true }));
/** Path of a named pipe without a writer. */
const pipe = join(base, "pipe");
beforeAll(() => {
  if (process.platform === "linux") execFileSync("mkfifo", [pipe]);
});
let folder: string;
let numFolders = 0;
beforeEach(() => {
  folder = join(base, String(numFolders++));
  mkdirSync(folder);
});

const from = import.meta.url;
const images = {
  size: [2, 2] as const,
  channels: 3 as const,
  fit: "cover" as const,
  testFraction: 0.5,
  skipDamaged: false,
  from,
};

/** Reads all windows of a streamed text file. */
const stream = async (file: string): Promise<void> => {
  const { train } = openTextStream({ file, window: 8, shuffleBuffer: 4 });
  const { shards, samples } = train.stream;
  if (samples.of !== "texts") throw new Error("no texts");
  const read = textReader({ shards, skipDamaged: false }, samples, () => undefined);
  for await (const _ of read(0, { offset: 0, skip: 0 }));
};

/** Makes a folder of images by class. `put` writes each image. */
const imageFolder = (put: (path: string) => void): string => {
  for (const name of ["a", "b"]) {
    mkdirSync(join(folder, name));
    for (let i = 0; i < 8; i++) put(join(folder, name, `${i}.png`));
  }
  return folder;
};

const manifest = (put: (path: string) => void): string => {
  const names = Array.from({ length: 8 }, (_, i) => `${i}.png`);
  for (const name of names) put(join(folder, name));
  const path = join(folder, "list.csv");
  writeFileSync(path, `path,label\n${names.map((name, i) => `${name},${i % 2}\n`).join("")}`);
  return path;
};

/** Returns the path of a file written by `put`. */
const file = (name: string, put: (path: string) => void): string => {
  const path = join(folder, name);
  put(path);
  return path;
};

const idxFolder = (put: (path: string) => void): string => {
  for (const { images: names, labels } of Object.values(mnistFiles))
    for (const name of [names, labels]) put(join(folder, name));
  return folder;
};

/** Readers under test, by name. Each reads files written by `put`. */
const readers: Readonly<Record<string, (put: (path: string) => void) => unknown>> = {
  text: (put) => loadDocuments({ file: file("a.txt", put) }),
  "text without an extension": (put) => loadDocuments({ file: file("text", put) }),
  "JSON lines": (put) => loadDocuments({ file: file("a.jsonl", put) }),
  ".ndjson": (put) => loadDocuments({ file: file("a.ndjson", put), field: "body" }),
  ".json": (put) => loadDocuments({ file: file("a.json", put), field: "body" }),
  Parquet: (put) => loadDocuments({ file: file("a.parquet", put) }),
  "streamed text": (put) => stream(file("a.txt", put)),
  "streamed JSON lines": (put) => stream(file("a.jsonl", put)),
  "compressed streamed text": (put) => stream(file("a.txt.gz", put)),
  "one text": (put) => loadText(file("a.txt", put)),
  "text for tokenizer training": (put) => trainTokenizer({ file: file("a.txt", put), vocabulary: 300 }),
  tokens: (put) => loadTokenFile(file("a.bin", put), { dtype: "u16", headerBytes: 0, vocabulary: 65_536 }),
  "tokens on disk": (put) => openTokenFile(file("a.bin", put), { dtype: "u16", headerBytes: 0, vocabulary: 65_536 }),
  tokenizer: (put) => loadTokenizer(file("tokenizer.json", put), from),
  "tokenizer configuration": (put) => {
    writeFileSync(join(folder, "tokenizer.json"), "{}");
    put(join(folder, "tokenizer_config.json"));
    return loadTokenizer(folder, from);
  },
  "image folder": (put) => loadImageFolder({ folder: imageFolder(put), ...images }),
  "images, skipped if damaged": (put) => loadImageFolder({ folder: imageFolder(put), ...images, skipDamaged: true }),
  manifest: (put) => loadImageManifest({ file: manifest(put), ...images }),
  "CSV manifest": (put) => readManifest(file("a.csv", put), 0.5),
  "manifest of JSON lines": (put) => readManifest(file("a.jsonl", put), 0.5),
  tar: (put) => loadImageShards({ shards: { file: file("a.tar", put) }, ...images }),
  ".npz": (put) => loadNumpy({ file: file("a.npz", put), predicts: "classes", testFraction: 0.5 }),
  ".npy": (put) => {
    for (const name of ["x_train", "y_train"]) put(join(folder, `${name}.npy`));
    return loadNumpy({ folder, predicts: "classes", testFraction: 0.5 });
  },
  IDX: (put) => loadIdx({ folder: idxFolder(put) }),
  MNIST: (put) => loadMnist({ folder: idxFolder(put), from }),
  "Fashion-MNIST": (put) => loadFashionMnist({ folder: idxFolder(put) }),
};

const refusal = async (name: string, put: (path: string) => void): Promise<string> => {
  try {
    await readers[name]!(put);
  } catch (error) {
    expect((error as Error).name, String(error)).toBe("DataError");
    expect((error as Error).message).not.toContain("\n");
    return (error as Error).message;
  }
  throw new Error(`${name} is read`);
};

const pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:74541f\nsize 1302138752\n";
const page = "<!DOCTYPE html>\n<html><body>Sign in</body></html>\n";

describe.each(Object.keys(readers))("%s", (name) => {
  test.runIf(process.platform === "linux")("does not wait for a pipe, and does not read a device", async () => {
    for (const what of [pipe, "/dev/zero"]) {
      expect(await refusal(name, (path) => symlinkSync(what, path))).toMatch(/(no|not a) regular file/);
      folder = join(base, String(numFolders++));
      mkdirSync(folder);
    }
  });

  test.runIf(process.platform === "linux")("reports a circular link", async () => {
    expect(await refusal(name, (path) => symlinkSync(path, path))).toMatch(
      /ELOOP|ENOENT|(no|not a) regular file|holds no|not a tokenizer/,
    );
  });

  test.each([
    ["a pointer of Git LFS", pointer, /is a pointer of Git LFS, not the file: run git lfs pull/],
    ["a page of HTML", page, /is an HTML page, not .*: see what the server says/],
    ["a zip archive", "PK\x03\x04\x14\0\x08\0rest", /is a zip archive|cannot be decompressed/],
    ["a pickle", "\x80\x04\x95\x0b\0\0\0\0\0\0\0]\x94", /is a Python pickle, which runs code/],
  ])("reports that a file is %s", async (_, text, message) => {
    expect(await refusal(name, (path) => writeFileSync(path, text, "latin1"))).toMatch(message);
  });

  test("reports that a file is compressed, or reads its content", async () => {
    const packed = gzipSync(gzipSync(pointer));
    expect(await refusal(name, (path) => writeFileSync(path, packed))).toMatch(
      /is compressed by gzip, not .*: unpack it|begins with 0x1f8b|too few|IDX header/,
    );
  });
});

describe("text", () => {
  test.each([
    [
      "UTF-16 with a byte-order mark",
      Buffer.from("\uFEFFthe whale", "utf16le"),
      /a\.txt is encoded in UTF-16 or UTF-32, not in UTF-8: /,
    ],
    [
      "UTF-16 without a byte-order mark",
      Buffer.from("the whale", "utf16le"),
      /is encoded in UTF-16 or UTF-32, not in UTF-8/,
    ],
    [
      "Latin-1",
      Buffer.from("the Été", "latin1"),
      /is not UTF-8: byte 4 is 0xc9, which does not start a character there; /,
    ],
    ["bytes of 0", Buffer.from("the\0whale"), /is not text: byte 3 is 0/],
    ["a character cut off", Buffer.from("the É").subarray(0, 5), /is not UTF-8: byte 4 is 0xc3/],
  ])("of %s is rejected with the position of the byte", async (_, bytes, message) => {
    for (const name of ["text", "streamed text", "text for tokenizer training"]) {
      expect(await refusal(name, (path) => writeFileSync(path, bytes))).toMatch(message);
    }
    expect(await refusal("compressed streamed text", (path) => writeFileSync(path, gzipSync(bytes)))).toMatch(/is /);
  });

  test("that is damaged after its beginning is rejected with the position of the byte, also in a stream", async () => {
    const bytes = Buffer.concat([Buffer.from("the whale\n".repeat(20_000)), Uint8Array.of(0xff), Buffer.from("\n")]);
    for (const name of ["text", "streamed text"])
      expect(await refusal(name, (path) => writeFileSync(path, bytes))).toMatch(/byte 200000 is 0xff/);
  });

  test("of an HTML page is read if the file has that extension", async () => {
    const { text } = await loadDocuments({ file: file("a.html", (path) => writeFileSync(path, page)) });
    expect(text).toHaveLength(page.length);
  });

  test("in lines of .json and .ndjson is read from the field", async () => {
    for (const name of ["a.json", "a.ndjson", "a.jsonl"]) {
      const path = file(name, (to) => writeFileSync(to, '{"body": "one"}\n{"body": "two"}\n'));
      const { text } = await loadDocuments({ file: path, field: "body", separator: "|" });
      expect(Buffer.from(text).toString()).toBe("one|two");
    }
  });

  test("rejects a field", async () => {
    const path = file("a.txt", (to) => writeFileSync(to, "text"));
    const message = /a\.txt is text without fields, but field is "body"; omit field, or give a JSON Lines/;
    await expect(loadDocuments({ file: path, field: "body" })).rejects.toThrow(message);
    await expect(trainTokenizer({ file: path, field: "body", vocabulary: 300 })).rejects.toThrow(message);
    expect(() => openTextStream({ file: path, field: "body", window: 8, shuffleBuffer: 4 })).toThrow(message);
    const lines = file("a.jsonl", (to) => writeFileSync(to, '{"body": "line"}'));
    const { text } = await loadDocuments({ file: [lines, path], field: "body", separator: "|" });
    expect(Buffer.from(text).toString()).toBe("line|text");
    expect([haveFields(path), haveFields([path, lines]), haveFields(folder)]).toEqual([false, true, true]);
  });
});

describe("tokens of NumPy", () => {
  /** Returns the bytes of a file as written by `numpy.save`. */
  const npy = (descr: string, shape: string, data: Uint8Array): Uint8Array => {
    const text = `{'descr': '${descr}', 'fortran_order': False, 'shape': (${shape}), }`.padEnd(117);
    return Buffer.concat([Buffer.from(`\x93NUMPY\x01\0v\0${text}\n`, "latin1"), data]);
  };
  const numbers = Uint16Array.of(7, 8, 9);
  const bytes = new Uint8Array(numbers.buffer);

  test("are read with the layout of the header, in memory and on disk", () => {
    const path = file("a.npy", (to) => writeFileSync(to, npy("<u2", "3,", bytes)));
    for (const headerBytes of [0, 128])
      expect([...loadTokenFile(path, { dtype: "u16", headerBytes }).tokens]).toEqual([7, 8, 9]);
    expect(openTokenFile(path, { dtype: "u16", headerBytes: 0, vocabulary: 10 })).toMatchObject({
      count: 3,
      headerBytes: 128,
    });
  });

  test.each([
    ["<i8", "3,", 0, 'is a NumPy array with elements of <i8, but dtype is u16; convert it with astype("uint16")'],
    [">u2", "3,", 0, "with elements of >u2, but dtype is u16"],
    ["<u2", "1, 3", 0, "of 2 dimensions, but tokens need one dimension; flatten it"],
    ["<u2", "3,", 1024, "with a header of 128 bytes, but headerBytes is 1024; omit headerBytes"],
  ])("of %s (%s) after %i bytes are rejected by name", (descr, shape, headerBytes, message) => {
    const path = file("a.npy", (to) => writeFileSync(to, npy(descr, shape, new Uint8Array(2000))));
    expect(() => loadTokenFile(path, { dtype: "u16", headerBytes })).toThrow(message);
    expect(() => openTokenFile(path, { dtype: "u16", headerBytes, vocabulary: 10 })).toThrow(message);
  });
});

describe("an .npz", () => {
  /** Returns a zip archive with one entry, without the checksum, which readers of these methods do not check. */
  const zip = (name: string, method: number): Uint8Array => {
    const encoded = Buffer.from(name);
    const local = Buffer.alloc(30);
    local.write("PK\x03\x04", "latin1");
    const central = Buffer.alloc(46);
    central.write("PK\x01\x02", "latin1");
    for (const [header, at] of [
      [local, 8],
      [central, 10],
    ] as const) {
      header.writeUInt16LE(20, at - 4);
      header.writeUInt16LE(method, at);
      header.writeUInt16LE(encoded.length, at + 18);
    }
    const end = Buffer.alloc(22);
    end.write("PK\x05\x06", "latin1");
    end.writeUInt16LE(1, 8);
    end.writeUInt16LE(1, 10);
    end.writeUInt32LE(central.length + encoded.length, 12);
    end.writeUInt32LE(local.length + encoded.length, 16);
    return Buffer.concat([local, encoded, central, encoded, end]);
  };

  test.each([
    [
      "x_train.npy",
      12,
      "x_train is compressed by bzip2, but only stored and deflated arrays are supported; write it again",
    ],
    ["x_train", 14, "x_train is compressed by LZMA, but"],
    ["x_train", 0, "x_train has 0 bytes, too few for a NumPy array"],
  ])("with an entry %s compressed by method %i is rejected with the reason", async (name, method, message) => {
    const path = file("a.npz", (to) => writeFileSync(to, zip(name, method)));
    const names = { inputs: "x_train", labels: "x_train" };
    await expect(loadNumpy({ file: path, train: names, predicts: "values", testFraction: 0.5 })).rejects.toThrow(
      message,
    );
  });
});

test("a manifest with too many columns is rejected in one line", () => {
  const path = file("a.csv", (to) => writeFileSync(to, `path,label${",x".repeat(5000)}\n`));
  expect(() => readManifest(path, 0.5)).toThrow(
    /a\.csv:1: the first line has 5002 columns, but at most 1000 are supported/,
  );
});

test("an image file larger than the maximum is rejected before it is read", async () => {
  const path = imageFolder((to) => {
    writeFileSync(to, "");
    truncateSync(to, 2 ** 28 + 1);
  });
  await expect(loadImageFolder({ folder: path, ...images })).rejects.toThrow(
    /png cannot be read \(it has 268435457 bytes, but the maximum for an image is 268435456\)/,
  );
});

describe("IDX", () => {
  const idx = (shape: readonly number[], data: readonly number[]): Uint8Array =>
    Uint8Array.of(0, 0, 8, shape.length, ...shape.flatMap((size) => [0, 0, 0, size]), ...data);
  const contents = { images: idx([4, 1, 1], [1, 2, 3, 4]), labels: idx([4], [0, 1, 0, 1]) };

  test.each<[string, (name: string) => string, (bytes: Uint8Array) => Uint8Array]>([
    ["as published", (name) => name, (bytes) => bytes],
    ["compressed, with .gz", (name) => `${name}.gz`, gzipSync],
    ["compressed, without .gz", (name) => name, gzipSync],
    ["with a dot, as on Kaggle", (name) => name.replace("-idx", ".idx"), (bytes) => bytes],
    ["with a dot, compressed", (name) => `${name.replace("-idx", ".idx")}.gz`, gzipSync],
  ])("is found and read %s", (_, rename, pack) => {
    for (const names of Object.values(mnistFiles))
      for (const of of ["images", "labels"] as const)
        writeFileSync(join(folder, rename(names[of])), pack(contents[of]));
    expect(loadIdx({ folder }).train.count).toBe(4);
  });
});

describe("at an address", () => {
  let body = Buffer.from("");
  const server = createServer(({ headers: { range } }, response) => {
    const [, begin, end] = /^bytes=(\d+)-(\d+)$/.exec(range ?? "")!;
    const part = body.subarray(Number(begin), Number(end) + 1);
    response.writeHead(206, { "content-range": `bytes ${begin}-${end}/${body.length}` }).end(part);
  });
  beforeAll(() => new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve)));
  afterAll(() => new Promise((resolve) => server.close(resolve)));

  test.each([
    [page, "is an HTML page, not a Parquet file"],
    [pointer, "is a pointer of Git LFS, not the file"],
  ])("a file of another format is rejected by its format", async (content, message) => {
    body = Buffer.from(content);
    const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}/a.parquet`;
    await expect(loadDocuments({ file: address })).rejects.toThrow(`/a.parquet ${message}`);
  });
});

test.runIf(process.platform === "linux")("a pipe among images decoded during training is reported", async () => {
  const options = { ...images, cacheMegabytes: 1 };
  const pipes = imageFolder((path) => symlinkSync(pipe, path));
  await expect(openImageFolder({ folder: pipes, ...options })).rejects.toThrow(
    /\d\.png cannot be read \(it is not a regular file\); check that the file exists and is readable/,
  );
  await expect(openImageFolder({ folder: pipes, ...options, skipDamaged: true })).rejects.toThrow("none of");
});
