import fc from "fast-check";
import { expect, test } from "vitest";
import { crc32cOf } from "./folded-crc32c.ts";
import { encodeHeader, type FrameHeader, frameFlags } from "./frame.ts";
import { FrameReader, type FrameReaderOptions, maxStreams } from "./frame-reader.ts";

const encode = (payload: Uint8Array, fields: Partial<FrameHeader> = {}): Uint8Array => {
  const header = { type: "data" as const, flags: 0, stream: 0, sequence: 0, tag: 0, length: payload.length, ...fields };
  return Uint8Array.from([...encodeHeader(header, payload), ...payload]);
};

const open = (limit = 1000, options?: FrameReaderOptions) => {
  const got: { header: FrameHeader; payload: Uint8Array }[] = [];
  const requested: number[] = [];
  const reader = new FrameReader(
    {
      limit: () => limit,
      target: ({ length }) => {
        requested.push(length);
        return new Uint8Array(length);
      },
      frame: (header, payload) => got.push({ header, payload }),
    },
    options,
  );
  return { reader, got, asked: requested };
};
const wireError = (code: string, message = /./): unknown =>
  expect.objectContaining({ name: "WireError", code, message: expect.stringMatching(message) });

const payloads = fc.array(fc.uint8Array({ maxLength: 700, size: "max" }), { maxLength: 6 });

test("reads the frames that were encoded, for any split of the stream", () => {
  const checksum = crc32cOf();
  fc.assert(
    fc.property(payloads, fc.infiniteStream(fc.integer({ min: 1, max: 300 })), (payloads, sizes) => {
      const { reader, got } = open(1000, { checksum });
      const stream = Uint8Array.from(
        payloads.flatMap((payload, sequence) => [...encode(payload, { sequence, tag: 7 })]),
      );
      for (let at = 0; at < stream.length; ) {
        const size = sizes.next().value;
        reader.push(stream.subarray(at, at + size));
        at += size;
      }
      reader.end();
      expect(got.map(({ payload }) => [...payload])).toEqual(payloads.map((payload) => [...payload]));
      expect(got.map(({ header }) => header.sequence)).toEqual(payloads.map((_, i) => i));
    }),
  );
});

test("reads the frames that were encoded when pushed byte by byte, and all at once", () => {
  const stream = Uint8Array.from([
    ...encode(Uint8Array.of(1, 2, 3)),
    ...encode(new Uint8Array(0), { sequence: 1 }),
    ...encode(Uint8Array.of(9), { sequence: 2 }),
  ]);
  for (const step of [1, stream.length]) {
    const { reader, got } = open();
    for (let at = 0; at < stream.length; at += step) reader.push(stream.subarray(at, at + step));
    reader.end();
    expect(got.map(({ payload }) => [...payload])).toEqual([[1, 2, 3], [], [9]]);
  }
});

test("accepts bytes written into its space without a push", () => {
  const stream = Uint8Array.from([
    ...encode(Uint8Array.of(1, 2, 3, 4, 5)),
    ...encode(Uint8Array.of(6), { sequence: 1 }),
  ]);
  const { reader, got } = open();
  for (let at = 0; at < stream.length; ) {
    const space = reader.space();
    expect(space.length).toBeGreaterThan(0);
    const count = Math.min(3, space.length, stream.length - at);
    space.set(stream.subarray(at, at + count));
    reader.filled(count);
    at += count;
  }
  expect(got.map(({ payload }) => [...payload])).toEqual([[1, 2, 3, 4, 5], [6]]);
});

test("rejects a length above the limit before requesting memory", () => {
  const { reader, asked: requested } = open(10);
  expect(() => reader.push(encode(new Uint8Array(11)))).toThrow(
    wireError("frame-length", /announces 11 bytes, at most 10 are allowed/),
  );
  expect(requested).toEqual([]);
});

test.each(Array.from({ length: 32 + 5 }, (_, i) => i))("detects a flipped bit in byte %i, and stays closed", (at) => {
  for (let bit = 0; bit < 8; bit++) {
    const { reader, got } = open();
    const bytes = encode(Uint8Array.of(1, 2, 3, 4, 5));
    bytes[at]! ^= 1 << bit;
    const run = (): void => {
      reader.push(bytes);
      reader.end();
    };
    expect(run).toThrow(expect.objectContaining({ name: "WireError" }));
    expect(got).toEqual([]);
    let again: unknown;
    try {
      reader.push(encode(Uint8Array.of(1)));
    } catch (error) {
      again = error;
    }
    expect(again).toMatchObject({ name: "WireError" });
    expect(() => reader.space()).toThrow(wireError((again as { code: string }).code));
  }
});

test("the end of the stream within a header or a payload is an error, between frames it is not", () => {
  const bytes = encode(Uint8Array.of(1, 2, 3));
  for (let cut = 0; cut <= bytes.length; cut++) {
    const { reader } = open();
    reader.push(bytes.subarray(0, cut));
    if (cut === 0 || cut === bytes.length) reader.end();
    else
      expect(() => reader.end()).toThrow(
        wireError("frame-truncated", cut < 32 ? /into a header of 32/ : /into the payload of a data frame of 3/),
      );
  }
});

test("counts the frames of each stream, and detects missing and duplicate ones", () => {
  const { reader, got } = open();
  for (const [stream, sequence] of [
    [0, 0],
    [1, 0],
    [0, 1],
    [1, 1],
  ] as const)
    reader.push(encode(Uint8Array.of(1), { stream, sequence }));
  expect(got).toHaveLength(4);
  expect(() => reader.push(encode(Uint8Array.of(1), { stream: 0, sequence: 1 }))).toThrow(
    wireError("frame-sequence", /sequence 1, 2 was expected/),
  );
  expect(() => open().reader.push(encode(Uint8Array.of(1), { sequence: 1 }))).toThrow(wireError("frame-sequence"));
  expect(() => open().reader.push(encode(Uint8Array.of(1), { stream: maxStreams }))).toThrow(wireError("frame-header"));
});

test("accepts any sequence with inSequence: false", () => {
  const { reader, got } = open(1000, { inSequence: false });
  for (const sequence of [5, 5, 2 ** 32 - 1]) reader.push(encode(Uint8Array.of(1), { sequence }));
  expect(got).toHaveLength(3);
});

test("with a checksum of the header only, accepts a corrupted payload and rejects a corrupted header", () => {
  const bytes = encode(Uint8Array.of(1, 2, 3), { flags: frameFlags.headerOnly });
  const payloadHit = Uint8Array.from(bytes);
  payloadHit[33]! ^= 1;
  const { reader, got } = open();
  reader.push(payloadHit);
  expect([...got[0]!.payload]).toEqual([1, 3, 3]);
  const headerHit = Uint8Array.from(bytes);
  headerHit[16]! ^= 1;
  const second = open();
  expect(() => second.reader.push(headerHit.subarray(0, 32))).toThrow(wireError("frame-checksum"));
  expect(second.asked).toEqual([]);
});

test("an error of the sink closes the reader, and a target of the wrong size throws", () => {
  const failing = new FrameReader({
    limit: () => 9,
    target: () => new Uint8Array(1),
    frame: () => {
      throw new RangeError("full");
    },
  });
  expect(() => failing.push(encode(Uint8Array.of(1)))).toThrow("full");
  expect(() => failing.end()).toThrow("full");
  const wrong = new FrameReader({ limit: () => 9, target: () => new Uint8Array(1), frame: () => undefined });
  expect(() => wrong.push(encode(Uint8Array.of(1, 2)))).toThrow(/gave 1 bytes for a payload of 2/);
});
