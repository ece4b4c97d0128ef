import { parseLinkFile } from "@skein/collectives/node";
import { parseIdx } from "@skein/data";
import { NdArray, readSafetensors, SkeinError, writeSafetensors } from "@skein/tensor-core";
import { parseJob } from "../../src/job/config.ts";
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

/** Readers of files from outside, each with a sound file to begin with. */
const readers: readonly {
  readonly name: string;
  readonly sound: Uint8Array;
  readonly read: (bytes: Uint8Array) => unknown;
}[] = [
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
];

/** What is put where something else was. */
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

/** A message is for people: so many characters in all. */
const mostCharacters = 8000;

export const hostileFiles: Attack = {
  name: "hostile-files",
  what: "files from outside are mutated: each is read, or refused by one error of ours of bounded length",
  fewTries: 400,
  tries: 50_000,
  run: (input) =>
    countTries(input, (number, draw) => {
      const { name, sound, read } = readers[number % readers.length]!;
      let bytes = sound;
      const slight = draw(2) === 0; // what is nearly sound goes deepest
      for (let changes = slight ? 1 : 1 + draw(3); changes > 0; changes--) {
        const at = draw(bytes.length);
        const until = Math.min(bytes.length, at + (slight ? 1 : [0, 1, 8, 64][draw(4)]!));
        const piece = slight
          ? new Uint8Array([draw(4) === 0 ? draw(256) : 0x30 + draw(10)])
          : pieces[draw(pieces.length)]!;
        bytes = Buffer.concat([bytes.subarray(0, at), piece, bytes.subarray(until)]);
      }
      try {
        read(bytes);
        return { counted: `${name} read` };
      } catch (error) {
        const counted = `${name} refused`;
        if (!(error instanceof SkeinError) || error.kind !== "user")
          return { counted, harm: `${name}: ${String(error).slice(0, 200)}` };
        const { length } = error.message;
        return { counted, harm: length > mostCharacters ? `${name}: a message of ${length} characters` : undefined };
      }
    }),
};
