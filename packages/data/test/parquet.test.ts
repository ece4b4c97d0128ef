import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { loadDocuments } from "../src/node.ts";
import { openSource } from "../src/node/byte-source.ts";
import { readParquetMetadata } from "../src/node/parquet-thread.ts";

// Returns the path of a file written by pyarrow, see parquet/make.py.

const place = (name: string): string => fileURLToPath(new URL(`parquet/${name}.parquet`, import.meta.url));

/** Texts written by make.py. Row 3 is null. */
const texts = [
  "Call me Ishmael.",
  "Été — 鯨 🐋",
  "line one\nline two\r\n",
  "the whale ".repeat(40),
  "Call me Ishmael.",
];

const load = async (file: string, options = {}): Promise<string> =>
  new TextDecoder().decode(
    Uint8Array.from((await loadDocuments({ file, separator: "|", skipDamaged: true, ...options })).text),
  );

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "skein-parquet-"))));
afterEach(() => rmSync(folder, { recursive: true }));

describe("texts in rows of Parquet", () => {
  test.each(["none", "snappy", "gzip", "brotli", "zstd", "lz4", "plain", "delta"])(
    "equal the written texts: %s",
    async (name) => {
      expect(await load(place(name))).toBe(texts.join("|"));
      expect(await load(place(name), { field: "body" })).toBe(texts.map((text) => text.toUpperCase()).join("|"));
    },
  );

  test("are found in folders together with other texts, in the order of names", async () => {
    copyFileSync(place("zstd"), join(folder, "b.parquet"));
    writeFileSync(join(folder, "a.txt"), "first");
    writeFileSync(join(folder, "c.jsonl"), '{"text": "last"}');
    expect(await load(folder)).toBe(["first", ...texts, "last"].join("|"));
  });

  test("that are missing are reported by their row, and skipped if requested", async () => {
    await expect(loadDocuments({ file: place("snappy") })).rejects.toThrow(
      /snappy\.parquet, row 3: the row has no text; correct it, or skip such entries with skipDamaged: true/,
    );
    expect((await loadDocuments({ file: place("snappy"), skipDamaged: true })).remarks).toEqual([
      "6 documents",
      `1 damaged lines or rows were skipped: ${place("snappy")}, row 3`,
    ]);
  });

  test.each([
    ["id", /row 0: the row has a id that is not a string; correct it, set field, or/],
    ["tags", /row 0: the row has a tags that is not a string/],
    ["meta", /row 0: the row has a meta that is not a string/],
    ["no", /none\.parquet has no column no; its columns: id, text, body, tags, meta; set field/],
    ["lang", /has no column lang/],
  ])("are rejected in column %s", async (field, message) => {
    await expect(loadDocuments({ file: place("none"), field })).rejects.toThrow(message);
  });

  test("are empty for a file without rows", async () => {
    expect(await load(place("empty"))).toBe("");
  });

  test("of a file truncated anywhere are rejected in one line", async () => {
    const bytes = readFileSync(place("snappy"));
    const file = join(folder, "cut.parquet");
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 0, max: bytes.length - 1 }), async (length) => {
        writeFileSync(file, bytes.subarray(0, length));
        await expect(load(file)).rejects.toThrow(/^.*cut\.parquet cannot be read as Parquet \(.*\); give/);
      }),
      { numRuns: 30 },
    );
  });

  test("of a struct with all leaves damaged are rejected once, without an unhandled promise", async () => {
    const path = fileURLToPath(new URL("parquet-images/plain.parquet", import.meta.url));
    const bytes = readFileSync(path);
    const source = await openSource(path, "", "parquet");
    const { row_groups: groups } = await readParquetMetadata(source);
    source.close();
    for (const { meta_data: leaf } of groups[0]!.columns)
      bytes[Number(leaf!.dictionary_page_offset || leaf!.data_page_offset)] = 0x0e; // not a valid Thrift type
    const file = join(folder, "struct.parquet");
    writeFileSync(file, bytes);
    for (let turn = 0; turn < 2; turn++)
      await expect(load(file, { field: "image" })).rejects.toThrow(/struct\.parquet cannot be read as Parquet /);
    expect(await load(place("snappy"))).toBe(texts.join("|")); // on the same thread
  });

  test("of a footer with bytes instead of a list are rejected in one line", async () => {
    const bytes = readFileSync(place("delta"));
    bytes[1192] = 0xe7; // the type of the key-value metadata
    const file = join(folder, "notes.parquet");
    writeFileSync(file, bytes);
    await expect(load(file)).rejects.toThrow(
      /notes\.parquet cannot be read as Parquet \(the .* in its footer are damaged\); give/,
    );
  });

  test("of a file that causes an endless loop of the parser are rejected after a timeout", {
    tags: "full",
  }, async () => {
    const bytes = readFileSync(place("plain"));
    bytes[238] = 0xe7;
    const file = join(folder, "loop.parquet");
    writeFileSync(file, bytes);
    await expect(load(file, { field: "body" })).rejects.toThrow(
      /loop\.parquet cannot be read as Parquet \(reading it does not finish, \d+ s after the last page\); name/,
    );
    expect(await load(place("snappy"))).toBe(texts.join("|"));
  });

  test("of files read concurrently are not mixed", async () => {
    const names = ["none", "snappy", "gzip", "brotli", "zstd", "lz4"];
    expect(await Promise.all(names.map((name) => load(place(name))))).toEqual(names.map(() => texts.join("|")));
  });
});

/** A web server for one file. A test can alter its responses. */
class FileServer {
  readonly bytes = readFileSync(place("gzip"));
  readonly ranges: string[] = [];
  spoil: (request: IncomingMessage, response: ServerResponse) => boolean = () => false;
  etag = '"1"';
  readonly #server: Server = createServer((request, response) => {
    this.ranges.push(request.headers.range ?? "all");
    if (this.spoil(request, response)) return;
    const [, begin, end] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? "") ?? [];
    const version = request.headers["if-range"];
    if (begin === undefined || (version !== undefined && version !== this.etag)) {
      response.writeHead(200).end(this.bytes);
      return;
    }
    const part = this.bytes.subarray(Number(begin), Number(end) + 1);
    const total = this.bytes.length;
    response.writeHead(206, { "content-range": `bytes ${begin}-${end}/${total}`, etag: this.etag }).end(part);
  });

  async open(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/texts.parquet?key=secret`;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

describe("at an address", () => {
  let server: FileServer;
  let address: string;
  beforeEach(async () => {
    server = new FileServer();
    address = await server.open();
  });
  afterEach(() => server.close());

  test("a file is read in ranges, with the same texts", async () => {
    expect(await load(address)).toBe(texts.join("|"));
    expect(server.ranges).not.toContain("all");
  });

  test("any range of a file equals the range of the local file", async () => {
    const sources = [await openSource(address, "", "parquet"), await openSource(place("gzip"), "", "parquet")];
    const part = fc
      .tuple(fc.nat(server.bytes.length), fc.nat(server.bytes.length))
      .map((ends) => ends.toSorted((a, b) => a - b));
    await fc.assert(
      fc.asyncProperty(part, async ([begin, end]) => {
        for (const source of sources) {
          expect(source.sizeBytes).toBe(server.bytes.length);
          expect(await source.read(begin!, end!)).toEqual(Uint8Array.from(server.bytes.subarray(begin, end)));
        }
      }),
      { numRuns: 50 },
    );
    for (const source of sources) source.close();
  });

  test("a temporary failure is retried", async () => {
    let failures = 0;
    server.spoil = (_, response) => {
      if (failures > 0) return false;
      failures++;
      response.writeHead(503).end();
      return true;
    };
    expect(await load(address)).toBe(texts.join("|"));
    expect(failures).toBe(1);
  });

  test("an unreachable server causes an error after four attempts", async () => {
    await server.close();
    vi.useFakeTimers({ toFake: ["setTimeout"] });
    try {
      const told: string[] = [];
      load(address).catch(({ message }: Error) => told.push(message));
      // The pauses between attempts use a fake clock, but the network needs real time.
      while (told.length === 0) {
        await vi.advanceTimersByTimeAsync(1000);
        await new Promise((resolve) => setImmediate(resolve));
      }
      expect(told[0]).toMatch(
        /^http:\/\/127\.0\.0\.1:\d+\/texts\.parquet cannot be read \(connect ECONNREFUSED .*, 4 times\); give an intact Parquet/,
      );
    } finally {
      vi.useRealTimers();
    }
  });

  test.each<[string, FileServer["spoil"], RegExp]>([
    [
      "that is missing",
      (_, response) => {
        response.writeHead(404).end();
        return true;
      },
      /texts\.parquet cannot be read \(the server answers 404\); give an intact Parquet file/,
    ],
    [
      "on a server without range requests",
      (_, response) => {
        response.writeHead(200).end("PAR1");
        return true;
      },
      /texts\.parquet: the server does not support HTTP range requests; download the file and give its path/,
    ],
    [
      "with a truncated range",
      ({ headers: { range } }, response) => {
        if (range === "bytes=0-511") return false;
        response.writeHead(206, { "content-range": "bytes 0-1/9" }).end("ab");
        return true;
      },
      /texts\.parquet: the server returned 2 of \d+ bytes at offset \d+/,
    ],
  ])("a file %s is reported in one line, without its key", async (_, spoil, message) => {
    server.spoil = spoil;
    const told = load(address).catch(({ message: text }: Error) => text);
    expect(await told).toMatch(message);
    expect(await told).not.toContain("secret");
  });

  test("a file that changes while it is read is reported", async () => {
    server.spoil = ({ headers: { range } }) => {
      if (range !== "bytes=0-511") server.etag = '"2"';
      return false;
    };
    await expect(load(address)).rejects.toThrow("texts.parquet changed while it was read; start again");
  });

  test("texts of other formats must be downloaded", async () => {
    await expect(load(address.replace("parquet", "jsonl"))).rejects.toThrow(
      /texts\.jsonl: only \.parquet can be read over HTTP; download the file and give its path/,
    );
  });
});
