import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { parseLinkFile } from "@skein/collectives/node";
import { parseIdx } from "@skein/data";
import { findInShards, loadDocuments, loadNumpy, loadTokenFile, loadTokenizer, readManifest } from "@skein/data/node";
import { parseJob } from "@skein/job/node";
import { loadImageProcessor } from "@skein/pretrained/node";
import { NdArray, readSafetensors, SkeinError, writeSafetensors } from "@skein/tensor-core";
import { byteLevelTokenizer } from "@skein/testing";
import type { Attack } from "./attack.ts";
import { countTries } from "./count-tries.ts";

const job = `name: digits
ranks: 2
batch: 64
epochs: 3
data: {kind: mnist, folder: "a b"}
model: {kind: mlp, hidden: [16, 32]}
optimizer: {kind: adamw}
learningRate: &rate {peak: 0.002}
`;
const links = JSON.stringify({
  format: "skein-links",
  version: 1,
  measuredAt: "2026-01-01T00:00:00Z",
  machine: "m",
  transport: "tcp",
  messageBytes: [64, 1024],
  hosts: [[0], [1]],
  across: { secondsPerMessage: 1e-5, secondsPerByte: 1e-9, r2: 1, worstRelativeError: 0 },
  pairs: [],
  reduceSecondsPerByte: 1e-10,
});
const encode = (text: string): Uint8Array => new TextEncoder().encode(text);
const decode = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);

/** Function that reads a file from an untrusted source, and a valid file that the attack alters. */
interface Reader {
  readonly name: string;
  readonly sound: Uint8Array;
  /** @param folder Folder in which the reader may write the bytes as a file. */
  read(bytes: Uint8Array, folder: string): unknown;
}

/** Returns the bytes of a test file of `@skein/data`. */
const fixture = (path: string): Uint8Array =>
  readFileSync(new URL(`../../../../packages/data/test/${path}`, import.meta.url));

/** Returns a reader that reads a file with the name `file`. */
const ofFile = (name: string, file: string, sound: Uint8Array, read: (path: string) => unknown): Reader => ({
  name,
  sound,
  read: (bytes, folder) => {
    const path = join(folder, file);
    writeFileSync(path, bytes);
    return read(path);
  },
});

const numpy = { predicts: "classes", testFraction: 0.5 } as const;

const readers: readonly Reader[] = [
  {
    name: "safetensors",
    sound: writeSafetensors(
      new Map([
        ["weight", NdArray.from([1, 2, 3, 4], [2, 2])],
        ["step", NdArray.scalar(7, "u32")],
      ]),
      { kind: "sound" },
    ),
    read: readSafetensors,
  },
  { name: "job", sound: encode(job), read: (bytes) => parseJob(decode(bytes), "job.yaml") },
  { name: "links", sound: encode(links), read: (bytes) => parseLinkFile(decode(bytes), "links.json") },
  {
    name: "idx",
    sound: new Uint8Array([0, 0, 8, 1, 0, 0, 0, 3, 1, 2, 3]),
    read: (bytes) => parseIdx(bytes, "labels", 1),
  },
  ofFile("text", "a.txt", encode("Call me Ishmael. Some years ago"), (file) => loadDocuments({ file })),
  ofFile("JSON lines", "a.jsonl", encode('{"text": "a"}\n{"text": "b"}\n'), (file) => loadDocuments({ file })),
  ofFile("Parquet", "a.parquet", fixture("parquet/plain.parquet"), (file) =>
    loadDocuments({ file, field: "body", skipDamaged: true }),
  ),
  ofFile("tar", "a.tar", fixture("shards/pax.tar"), (file) =>
    findInShards({ file }, { testFraction: 0.5, skipDamaged: true }),
  ),
  ofFile("npz", "a.npz", fixture("numpy/stored.npz"), (file) => loadNumpy({ file, ...numpy })),
  ofFile("manifest", "a.csv", encode("path,label\na.png,a\nb.png,b\nc.png,a\nd.png,b\n"), (file) =>
    readManifest(file, 0.5),
  ),
  ofFile("tokens", "a.bin", Uint8Array.of(1, 0, 2, 0, 3, 0, 4, 0), (file) =>
    loadTokenFile(file, { dtype: "u16", headerBytes: 0, vocabulary: 50_257 }),
  ),
  ofFile("tokenizer", "tokenizer.json", encode(byteLevelTokenizer()["tokenizer.json"]), (file) =>
    loadTokenizer(file, import.meta.url).encode("the whale"),
  ),
  {
    name: "preprocessor",
    sound: encode('{"size": {"height": 224, "width": 224}, "image_mean": [0.5, 0.5, 0.5], "rescale_factor": 0.004}'),
    read: (bytes, folder) => {
      writeFileSync(join(folder, "preprocessor_config.json"), bytes);
      return loadImageProcessor(folder, "vit");
    },
  },
];

/** First bytes of other file types. */
const heads = [
  encode("version https://git-lfs.github.com/spec/v1\noid sha256:74541f\nsize 1302138752\n"),
  encode("<!DOCTYPE html>\n<html>"),
  gzipSync("text"),
  encode("PK\u0003\u0004\u0014\0\u0008\0"),
  Uint8Array.of(0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0, 0x76, 0),
  encode("PAR1"),
  encode("GGUF\u0003\0\0\0"),
  Buffer.from("\uFEFFtext", "utf16le"),
  Uint8Array.of(0x80, 4, 0x95, 11, 0, 0, 0, 0, 0, 0, 0, 0x5d),
  Uint8Array.of(0xff, 0xd8, 0xff),
];

/** Bytes that replace bytes of a valid file. */
const pieces = [
  "[".repeat(3000),
  "{".repeat(3000),
  '{"a":'.repeat(2000),
  "- ".repeat(2000),
  "&a [*a, *a]",
  "*rate",
  "<<: *rate",
  "!!js/function x",
  "9".repeat(400),
  "1e999",
  "-0",
  "9007199254740993",
  "\u0000",
  "\u001b[2J",
  "\ud800",
  '"'.repeat(301),
  "x".repeat(100_000),
  "__proto__",
  "constructor",
  "k: 1\n".repeat(50),
  "\n---\n",
  "%YAML 1.1\n---\n",
].map(encode);

/** Maximum number of characters of an error message. */
const maxCharacters = 8000;

export const hostileFiles: Attack = {
  name: "hostile-files",
  what: "files from outside are mutated, or begin like other types: each is read, or refused with one error of bounded length",
  fewTries: 600,
  tries: 50_000,
  run: (input) =>
    countTries(input, async (number, draw) => {
      const { name, sound, read } = readers[number % readers.length]!;
      let bytes = draw(8) === 0 ? Buffer.concat([heads[draw(heads.length)]!, sound]) : sound;
      const slight = draw(2) === 0; // nearly valid files reach the deepest parsing code
      for (let changes = slight ? 1 : 1 + draw(3); changes > 0; changes--) {
        const at = draw(bytes.length);
        const until = Math.min(bytes.length, at + (slight ? 1 : [0, 1, 8, 64][draw(4)]!));
        const piece = slight
          ? new Uint8Array([draw(4) === 0 ? draw(256) : 0x30 + draw(10)])
          : pieces[draw(pieces.length)]!;
        bytes = Buffer.concat([bytes.subarray(0, at), piece, bytes.subarray(until)]);
      }
      try {
        await read(bytes, input.folder);
        return { counted: `${name} read` };
      } catch (error) {
        const counted = `${name} refused`;
        if (!(error instanceof SkeinError) || error.kind !== "user")
          return { counted, harm: `${name}: ${String(error).slice(0, 200)}` };
        const { length } = error.message;
        if (error.message.includes("\n") && name !== "job") return { counted, harm: `${name}: a message of lines` };
        return { counted, harm: length > maxCharacters ? `${name}: a message of ${length} characters` : undefined };
      }
    }),
};
