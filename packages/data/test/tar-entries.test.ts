import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { shardSamples } from "../src/node/shard-samples.ts";
import { type FoundEntry, SourcePieces, tarEntries } from "../src/node/tar-entries.ts";

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);

interface Member {
  readonly name: string;
  readonly type?: string;
  readonly content?: string;
  /** Size field of the header. Default: size of `content`. */
  readonly size?: string | Uint8Array;
  readonly magic?: string;
}

/** Returns the bytes of a file in a tar archive: a header block and the content, padded to whole blocks. */
const member = ({ name, type = "0", content = "", size, magic = "ustar\0" }: Member): Uint8Array => {
  const bytes = encode(content);
  const block = new Uint8Array(512 + Math.ceil(bytes.length / 512) * 512);
  const write = (at: number, field: string | Uint8Array): void =>
    block.set(typeof field === "string" ? encode(field) : field, at);
  write(0, name);
  write(124, size ?? bytes.length.toString(8).padStart(11, "0"));
  write(148, " ".repeat(8));
  write(156, type);
  write(257, magic);
  const sum = block.subarray(0, 512).reduce((total, byte) => total + byte, 0);
  write(148, `${sum.toString(8).padStart(6, "0")}\0 `);
  write(512, bytes);
  return block;
};

const tarOf = (...members: readonly Member[]): Uint8Array =>
  Buffer.concat([...members.map(member), new Uint8Array(1024)]);

/** Returns a pax header with one record. */
const pax = (record: string): Member => ({ name: "pax", type: "x", content: record });

const piecesOf = (bytes: Uint8Array): SourcePieces =>
  new SourcePieces({
    name: "a.tar",
    sizeBytes: bytes.length,
    read: async (begin, end) => Uint8Array.from(bytes.subarray(begin, end)),
    close: () => undefined,
  });

const allOf = async <Item>(items: AsyncIterable<Item>): Promise<Item[]> => {
  const all: Item[] = [];
  for await (const item of items) all.push(item);
  return all;
};

const entriesOf = (bytes: Uint8Array): Promise<FoundEntry[]> => allOf(tarEntries(piecesOf(bytes)));
const namesOf = async (...members: readonly Member[]): Promise<string[]> =>
  (await entriesOf(tarOf(...members))).map(({ name }) => name);

/** Returns a big-endian number of 12 bytes in GNU's base-256 format. */
const base256 = (...last: readonly number[]): Uint8Array => {
  const field = new Uint8Array(12);
  field[0] = 0x80;
  field.set(last, 12 - last.length);
  return field;
};

const [a, b]: readonly Member[] = [
  { name: "a.txt", content: "one" },
  { name: "b.txt", content: "two" },
];

describe("a tar", () => {
  test.each([
    [
      "a negative size in an extended header",
      [pax("14 size=-1536\n"), a!],
      /where an extended header has size="-1536"/,
    ],
    ["a size that is not a number", [pax("12 size=abc\n"), a!], /byte 0, where an extended header has size/],
    ["a record shorter than its declared length", [pax("30 size=99999999999999999999\n"), a!], /malformed record/],
    [
      "a size that a double cannot represent",
      [pax("29 size=99999999999999999999\n"), a!],
      /size="99999999999999999999"/,
    ],
    ["a record with a length that is not an integer", [pax("1e-300 path=x\n"), a!], /byte 0, .* a malformed record/],
    ["a record that exceeds its header", [pax("99 path=x\n"), a!], /a malformed record/],
    ["a record of length 0", [pax("0 path=x\n"), a!], /a malformed record/],
    ["a record without a key", [pax("9 pathx\n\n"), a!], /a malformed record/],
    ["a size of 2^60", [a!, { ...b!, size: base256(16, 0, 0, 0, 0, 0, 0, 0) }], /byte 1024, .* an impossible size/],
    ["a negative size", [a!, { ...b!, size: new Uint8Array(12).fill(255) }], /byte 1024, .* an impossible size/],
    ["letters for a size", [a!, { ...b!, size: "zzz" }], /byte 1024, .* an impossible size/],
    ["a name of a gibibyte", [{ name: "long", type: "L", size: "10000000000" }, a!], /an impossible size/],
    ["a size beyond its end", [a!, { ...b!, size: "00000077777" }], /ends after \d+ bytes, in the middle of a file/],
    ["a label beyond its end", [a!, { ...b!, type: "V", size: "00000077777" }], /ends after \d+ bytes, in the middle/],
    ["a sparse file of GNU tar", [a!, { ...b!, type: "S" }], /"b.txt" is a sparse file \(tar --sparse\)/],
    ["a sparse file of pax", [pax("22 GNU.sparse.major=1\n"), b!], /"b.txt" is a sparse file/],
    ["a part of several volumes", [{ ...a!, type: "M" }], /a volume of a multi-volume tar/],
  ] as const)("with %s is rejected in one line", async (_, members, message) => {
    await expect(entriesOf(tarOf(...members))).rejects.toThrow(message);
  });

  test("skips labels, links, folders and their sizes, as tar does", async () => {
    const label = { name: "mylabel", type: "V", size: new Uint8Array(12) };
    const folder = { name: "dir/", type: "5", size: base256(16, 0, 0, 0, 0, 0, 0, 0) };
    const oldFolder = { name: "old/", type: "\0", magic: "" };
    const link = { name: "link", type: "2", size: "00000001000" };
    expect(await namesOf(label, a!, folder, oldFolder, link, { ...b!, type: "\0", magic: "" })).toEqual([
      "a.txt",
      "b.txt",
    ]);
    expect(await namesOf(pax("13 size=4000\n"), folder, a!)).toEqual(["a.txt"]);
  });

  test("reads names and sizes of extended headers, also with GNU's long names between them", async () => {
    const long = { name: "././@LongLink", type: "L", content: "a-long-name.txt\0" };
    const [entry] = await entriesOf(tarOf(pax("10 size=3\n"), long, { ...a!, size: "00000000777" }));
    expect(entry).toMatchObject({ name: "a-long-name.txt", sizeBytes: 3, header: 0 });
    expect(await namesOf(pax("12 path=é=\n"), a!, b!)).toEqual(["é=", "b.txt"]);
  });

  test("with any bytes in an extended header is read or rejected in one line", async () => {
    const field = fc.oneof(
      fc.constantFrom("-1", "-512", "1e9", "0x10", "NaN", "", "9007199254740993", "4294967296"),
      fc.string({ maxLength: 6 }),
    );
    const record = fc.tuple(field, fc.constantFrom("size", "path", "linkpath", ""), field);
    await fc.assert(
      fc.asyncProperty(
        fc.array(record, { maxLength: 3 }),
        fc.uint8Array({ minLength: 12, maxLength: 12 }),
        fc.constantFrom(..."0\x0015xgLKVSMD7"),
        async (records, size, type) => {
          const header = pax(records.map(([length, key, value]) => `${length} ${key}=${value}\n`).join(""));
          const entries = await entriesOf(tarOf(header, { ...a!, type, size }, b!)).catch((error: Error) => error);
          if (entries instanceof Error) expect(entries.name).toBe("DataError");
          else for (const { begin, sizeBytes } of entries) expect(begin + sizeBytes).toBeLessThanOrEqual(4096);
        },
      ),
      { numRuns: 200 },
    );
  });
});

test("files of a sample that are not adjacent are recognized", async () => {
  const names = ["1.png", "2.png", "2.cls", "1.cls", "1.json"];
  const samples = await allOf(shardSamples(piecesOf(tarOf(...names.map((name) => ({ name }))))));
  expect(samples.map(({ key, files, isSplit }) => [key, [...files.keys()], isSplit])).toEqual([
    ["1", ["png"], false],
    ["2", ["png", "cls"], false],
    ["1", ["cls", "json"], true],
  ]);
});
