// One hundred thousand damaged streams of frames. For each stream, every delivered frame was sent, frames are in the
// order of sending, and every other outcome is a single typed error.
import { examples } from "@skein/testing";
import fc from "fast-check";
import { expect, test } from "vitest";
import { crc32cOf } from "../src/wire/folded-crc32c.ts";
import { encodeHeader, type FrameHeader, type FrameType, frameTypes, headerBytes } from "../src/wire/frame.ts";
import { FrameReader } from "../src/wire/frame-reader.ts";
import { WireError } from "../src/wire/errors.ts";

const limit = 1024;
const checksum = crc32cOf();

/** Generates frames with a short payload, or with a payload above the threshold of the folded checksum. */
const frame = fc.record({
  type: fc.constantFrom(...(Object.keys(frameTypes) as FrameType[])),
  // Without the flag `headerOnly`, because such payloads are not checked.
  flags: fc.constantFrom(0, 1, 4, 5),
  stream: fc.nat({ max: 3 }),
  tag: fc.nat({ max: 2 ** 32 - 1 }),
  payload: fc.oneof(
    { weight: 6, arbitrary: fc.uint8Array({ maxLength: 40 }) },
    {
      weight: 1,
      arbitrary: fc.nat({ max: limit - 1 }).map((length) => Uint8Array.from({ length }, (_, i) => (i * length) >>> 3)),
    },
  ),
});

const word64 = fc.oneof(
  fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
  fc.constantFrom(2n ** 64n - 1n, 2n ** 63n, 2n ** 53n, 2n ** 53n - 1n, 2n ** 32n, BigInt(limit) + 1n, BigInt(limit)),
  fc.bigInt({ min: 0n, max: BigInt(limit) }),
);
const position = fc.nat({ max: 2 ** 30 });

/** Generates damage to a stream in transit. Positions are modulo the length of the stream. */
const damage = fc.oneof(
  fc.record({ kind: fc.constant("flip" as const), at: position, bit: fc.nat({ max: 7 }) }),
  fc.record({ kind: fc.constant("cut" as const), at: position }),
  fc.record({ kind: fc.constant("drop" as const), at: position, count: fc.integer({ min: 1, max: 80 }) }),
  fc.record({ kind: fc.constant("repeat" as const), at: position, count: fc.integer({ min: 1, max: 80 }) }),
  fc.record({
    kind: fc.constant("insert" as const),
    at: position,
    bytes: fc.uint8Array({ minLength: 1, maxLength: 40 }),
  }),
  fc.record({ kind: fc.constant("drop frame" as const), at: position }),
  fc.record({ kind: fc.constant("repeat frame" as const), at: position }),
  fc.record({ kind: fc.constant("swap frames" as const), at: position }),
  fc.record({ kind: fc.constant("splice length" as const), at: position, length: word64 }),
  fc.record({
    kind: fc.constant("splice field" as const),
    at: position,
    field: fc.constantFrom(0, 4, 5, 6, 8, 12, 16, 28),
    value: fc.nat({ max: 255 }),
  }),
);
type Damage = typeof damage extends fc.Arbitrary<infer T> ? T : never;

const joined = (parts: readonly Uint8Array[]): Uint8Array => {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
};

/** Returns frames with this damage: to complete frames, or to the header of one frame. */
const damageFrames = (frames: readonly Uint8Array[], what: Damage): readonly Uint8Array[] => {
  if (frames.length === 0) return frames;
  const i = what.at % frames.length;
  const changed = (write: (view: DataView) => void): readonly Uint8Array[] => {
    const copy = frames[i]!.slice();
    write(new DataView(copy.buffer));
    return frames.with(i, copy);
  };
  if (what.kind === "drop frame") return frames.toSpliced(i, 1);
  if (what.kind === "repeat frame") return frames.toSpliced(i, 0, frames[i]!);
  if (what.kind === "swap frames")
    return frames.with(i, frames.at(i - 1)!).with((i + frames.length - 1) % frames.length, frames[i]!);
  if (what.kind === "splice length") return changed((view) => view.setBigUint64(20, what.length, true));
  if (what.kind === "splice field") return changed((view) => view.setUint8(what.field, what.value));
  return frames;
};

/** Returns the bytes of a stream with this damage, at any position. */
const damageBytes = (stream: Uint8Array, what: Damage): Uint8Array => {
  if (stream.length === 0) return stream;
  const at = what.at % stream.length;
  const [head, tail] = [stream.subarray(0, at), stream.subarray(at)];
  if (what.kind === "flip") return stream.with(at, stream[at]! ^ (1 << what.bit));
  if (what.kind === "cut") return head;
  if (what.kind === "drop") return joined([head, tail.subarray(what.count)]);
  if (what.kind === "repeat") return joined([head, tail.subarray(0, what.count), tail]);
  if (what.kind === "insert") return joined([head, what.bytes, tail]);
  return stream;
};

type Sent = FrameHeader & { readonly payload: Uint8Array };

const send = (frames: readonly Omit<Sent, "sequence" | "length">[]): { sent: Sent[]; encoded: Uint8Array[] } => {
  const next = new Map<number, number>();
  const sent = frames.map((each) => {
    const sequence = next.get(each.stream) ?? 0;
    next.set(each.stream, sequence + 1);
    return { ...each, sequence, length: each.payload.length };
  });
  return {
    sent,
    encoded: sent.map((each) =>
      joined([encodeHeader(each, each.payload, new Uint8Array(headerBytes), checksum), each.payload]),
    ),
  };
};

interface Outcome {
  readonly delivered: readonly Sent[];
  readonly error: unknown;
}

const receive = (stream: Uint8Array, sizes: readonly number[]): Outcome => {
  const delivered: Sent[] = [];
  const reader = new FrameReader(
    {
      limit: () => limit,
      target: ({ length }) => {
        if (!(length > 0 && length <= limit)) expect.fail(`memory of ${length} bytes was requested`);
        return new Uint8Array(length);
      },
      frame: (header, payload) => void delivered.push({ ...header, payload }),
    },
    { checksum },
  );
  try {
    for (let at = 0, i = 0; at < stream.length; i++) {
      const size = sizes.length === 0 ? stream.length : sizes[i % sizes.length]!;
      reader.push(stream.subarray(at, at + size));
      at += size;
    }
    reader.end();
    return { delivered, error: undefined };
  } catch (error) {
    return { delivered, error };
  }
};

const same = (a: Sent, b: Sent): boolean =>
  a.type === b.type &&
  a.flags === b.flags &&
  a.stream === b.stream &&
  a.sequence === b.sequence &&
  a.tag === b.tag &&
  Buffer.compare(a.payload, b.payload) === 0;

test("damaged streams deliver only sent frames, or one typed error", () => {
  const seen = new Map<string, number>();
  const pieces = fc.oneof(
    fc.constant([1]),
    fc.constant([]),
    fc.array(fc.integer({ min: 1, max: 100 }), { minLength: 1, maxLength: 5 }),
  );
  fc.assert(
    fc.property(
      fc.array(frame, { minLength: 1, maxLength: 4 }),
      fc.array(damage, { minLength: 1, maxLength: 3 }),
      pieces,
      (frames, damages, sizes) => {
        const { sent, encoded } = send(frames);
        const stream = damages.reduce(damageBytes, joined(damages.reduce(damageFrames, encoded)));
        const { delivered, error } = receive(stream, sizes);
        if (error !== undefined && !(error instanceof WireError)) throw error;
        // For each stream: all sent frames, or a prefix of them.
        const counts = new Map<number, number>();
        for (const each of delivered) {
          const nth = counts.get(each.stream) ?? 0;
          counts.set(each.stream, nth + 1);
          const original = sent.filter(({ stream }) => stream === each.stream)[nth];
          if (original === undefined || !same(original, each))
            expect.fail("a frame was delivered that was not sent there");
        }
        const kind = error === undefined ? "delivered" : error.code;
        seen.set(kind, (seen.get(kind) ?? 0) + 1);
      },
    ),
    { numRuns: examples(20_000, 100_000) },
  );
  // The damage triggered every check, not only the first check.
  const kinds = [
    "delivered",
    "not-a-frame",
    "protocol-version",
    "frame-header",
    "frame-length",
    "frame-checksum",
    "frame-sequence",
    "frame-truncated",
  ];
  for (const kind of kinds) expect(seen.get(kind) ?? 0, kind).toBeGreaterThan(examples(20, 100));
}, 60_000);

test("a stream truncated at every byte, pushed in two pieces split at every byte, delivers its complete frames", () => {
  const body = Uint8Array.from({ length: 20 }, (_, i) => i);
  const { sent, encoded } = send([
    { type: "data", flags: 4, stream: 1, tag: 1, payload: body },
    { type: "ping", flags: 0, stream: 0, tag: 0, payload: new Uint8Array(0) },
    { type: "data", flags: 4, stream: 1, tag: 2, payload: body },
  ]);
  const stream = joined(encoded);
  for (let end = 0; end <= stream.length; end++) {
    for (let cut = 1; cut <= end; cut++) {
      const { delivered, error } = receive(stream.subarray(0, end), [cut, end]);
      const complete = end < 52 ? 0 : end < 84 ? 1 : end < 136 ? 2 : 3;
      if (delivered.length !== complete || !delivered.every((each, i) => same(each, sent[i]!)))
        expect.fail(`end ${end}, cut ${cut}`);
      const whole = [0, 52, 84, 136].includes(end);
      if (whole !== (error === undefined) || !(whole || (error as WireError).code === "frame-truncated"))
        expect.fail(`end ${end}, cut ${cut}: ${error}`);
    }
  }
});
