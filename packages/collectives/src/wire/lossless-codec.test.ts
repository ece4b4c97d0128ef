import { seeded } from "@skein/testing";
import { examples } from "@skein/testing";
import fc from "fast-check";
import { expect, test } from "vitest";
import { wasmMessageMemory } from "../message-memory.ts";
import { type CodedDType, codedBytes, codedHeaderBytes, codings } from "./coded-payload.ts";
import { losslessCodec } from "./lossless-codec.ts";
import { openWireKernels } from "./wire-kernels.ts";

const memory = new WebAssembly.Memory({ initial: 1, maximum: 4096, shared: true });
const messages = wasmMessageMemory(memory);
const codec = losslessCodec(openWireKernels({ memory, messages }));
const dtypes = Object.keys(codings) as CodedDType[];

/** Returns elements with the given upper 16 bits. The lower bits of an f32 are random. */
const fromHalves = (dtype: CodedDType, halves: ArrayLike<number>): Uint8Array => {
  const random = seeded(halves.length + 1);
  const words =
    dtype === "bf16"
      ? Uint16Array.from(halves)
      : Uint32Array.from(halves, (half) => ((half << 16) | (random() * 65_536)) >>> 0);
  return new Uint8Array(words.buffer);
};
const half = (sign: number, exponent: number, mantissa: number): number => (sign << 15) | (exponent << 7) | mantissa;
const halvesOf = (values: Float32Array): Uint16Array =>
  Uint16Array.from(new Uint32Array(values.buffer), (word) => word >>> 16);
const gaussian = (count: number, sigma: number, seed = 1): Float32Array => {
  const random = seeded(seed);
  return Float32Array.from(
    { length: count },
    () => sigma * Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random()),
  );
};
const bytesOf = (dtype: CodedDType, values: Float32Array): Uint8Array =>
  dtype === "f32" ? new Uint8Array(values.slice().buffer) : fromHalves("bf16", halvesOf(values));

/** Returns the number of exponents outside the window that starts at `first`, counted directly. */
const countOutside = (dtype: CodedDType, bytes: Uint8Array, first: number): number => {
  const { bytesPerElement } = codings[dtype];
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let outside = 0;
  for (let end = bytesPerElement; end <= bytes.byteLength; end += bytesPerElement) {
    const exponent = (view.getUint16(end - 2, true) >>> 7) & 0xff;
    if (exponent < first || exponent > first + 6) outside++;
  }
  return outside;
};

/**
 * Encodes bytes, checks that they decode to the original, and returns the coded bytes; undefined if coding does not
 * reduce the size.
 */
const roundTrip = (dtype: CodedDType, bytes: Uint8Array): Uint8Array | undefined => {
  const before = bytes.slice();
  const coded = codec.encode(dtype, bytes);
  expect(bytes).toEqual(before);
  if (coded === undefined) return undefined;
  const count = bytes.byteLength / codings[dtype].bytesPerElement;
  expect(coded.byteLength).toBeLessThan(bytes.byteLength);
  expect(coded.byteLength).toBe(codedBytes({ dtype, count, numEscapes: countOutside(dtype, bytes, coded[1]!) }));
  const restored = new Uint8Array(bytes.byteLength).fill(0xee);
  codec.decode(coded, restored);
  if (Buffer.compare(restored, bytes) !== 0) expect.fail(`${count} elements of ${dtype} are not restored`);
  return coded;
};

/**
 * Returns the positions of the three bits of an element's code: byte offset from the end of the raw bytes, and bit
 * mask.
 */
const codeBits = (count: number, element: number): { at: number; mask: number }[] => {
  const whole = count - (count % 128);
  const [block, within, rest] = [element - (element % 128), element % 128, Math.ceil((count - whole) / 8)];
  return [0, 1, 2].map((bit) => {
    if (element >= whole)
      return { at: (3 * whole) / 8 + bit * rest + ((element - whole) >> 3), mask: 1 << (element & 7) };
    const place = 3 * (within >> 4) + bit;
    return { at: (3 * block) / 8 + 16 * (place >> 3) + (within & 15), mask: 1 << (place & 7) };
  });
};

test("encodes in the documented layout", () => {
  // Exponents 100 to 106 in turn, except for element 9 and the last element: a block of 128 elements, then 11 elements.
  const halves = Array.from({ length: 139 }, (_, i) =>
    i === 9 ? half(1, 200, 5) : i === 138 ? half(1, 3, 6) : half(0, 100 + (i % 7), i & 127),
  );
  for (const dtype of dtypes) {
    const bytes = fromHalves(dtype, halves);
    const coded = roundTrip(dtype, bytes)!;
    expect([...coded.subarray(0, 16)]).toEqual([
      codings[dtype].number,
      100,
      0,
      0,
      139,
      0,
      0,
      0,
      2,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
    ]);
    const signs = dtype === "bf16" ? 16 : 16 + 2 * 139;
    const lower = dtype === "bf16" ? [] : [...bytes].filter((_, i) => i % 4 < 2);
    expect([...coded.subarray(16, signs)]).toEqual(lower);
    expect([...coded.subarray(signs, signs + 139)]).toEqual(halves.map((half) => ((half >> 8) & 0x80) | (half & 0x7f)));
    const codes = new Uint8Array(54);
    halves.forEach((_, i) => {
      const code = i === 9 || i === 138 ? 0 : 1 + (i % 7);
      codeBits(139, i).forEach(({ at, mask }, bit) => (codes[at]! |= (code >> bit) & 1 ? mask : 0));
    });
    expect(coded.subarray(signs + 139, signs + 139 + 54)).toEqual(codes);
    expect([...coded.subarray(signs + 139 + 54)]).toEqual([200, 3]);
  }
});

test.each(dtypes)("restores each of the 65,536 upper halves of %s", (dtype) => {
  const usual = halvesOf(gaussian(3 * 65_536, 0.01));
  // One varying pattern per three common elements, so that coding reduces the size; all 65,536 patterns occur.
  const halves = Array.from({ length: 4 * 65_536 }, (_, i) => (i % 4 === 3 ? i >> 2 : usual[(i >> 2) * 3 + (i % 4)]!));
  expect(roundTrip(dtype, fromHalves(dtype, halves))).toBeDefined();
  const inARow = [...halvesOf(gaussian(2 * 65_536, 0.01)), ...Array.from({ length: 65_536 }, (_, i) => i)];
  expect(roundTrip(dtype, fromHalves(dtype, inARow))).toBeDefined();
});

test("preserves the bits of zeros, subnormals, infinities and NaN payloads of f32", () => {
  const special = [
    0, 0x80000000, 1, 0x80000001, 0x007fffff, 0x00800000, 0x7f7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0x7f800001,
    0xffffffff, 0x7fabcdef,
  ];
  for (const start of [0, 1, 63, 64, 990]) {
    const words = new Uint32Array(gaussian(1000, 1).buffer);
    special.forEach((word, i) => (words[(start + i) % 1000] = word));
    expect(roundTrip("f32", new Uint8Array(words.buffer))).toBeDefined();
  }
});

test.each(dtypes)("restores %s of any length, with an increasing number of exponents outside the window", (dtype) => {
  const random = seeded(3);
  for (const count of [
    0, 1, 2, 7, 8, 9, 40, 47, 63, 64, 65, 71, 127, 128, 129, 191, 192, 193, 255, 256, 257, 383, 384, 2047, 2048, 2049,
    2175, 2176, 4224, 10_007,
  ]) {
    for (const share of [0, 0.02, 0.3, 0.6, 1]) {
      const halves = Array.from({ length: count }, () =>
        half(random() < 0.5 ? 1 : 0, random() < share ? random() * 256 : 120 + random() * 7, random() * 128),
      );
      const coded = roundTrip(dtype, fromHalves(dtype, halves));
      if (share === 0)
        expect(coded !== undefined).toBe(
          codedBytes({ dtype, count, numEscapes: 0 }) < count * codings[dtype].bytesPerElement,
        );
      if (share === 1) expect(coded).toBeUndefined();
    }
  }
});

test.each([0, 7, 122, 243, 249])("restores values with a window that begins at exponent %i", (first) => {
  const halves = Array.from({ length: 1000 }, (_, i) => half(i & 1, first + (i % 7), i & 127));
  for (const dtype of dtypes) expect(roundTrip(dtype, fromHalves(dtype, halves))![1]).toBe(first);
});

test.each(dtypes)("encodes %s exactly if it saves at least one byte", (dtype) => {
  for (const count of [640, 1001]) {
    const limit = count * codings[dtype].bytesPerElement - codedBytes({ dtype, count, numEscapes: 0 }) - 1;
    for (const place of ["front", "back"]) {
      const withEscapes = (numEscapes: number): Uint8Array => {
        // Exponents spread widely, so that coding reduces the size only with the window from 120 to 126.
        const halves = Array.from({ length: count }, (_, i) =>
          half(0, i < numEscapes ? 8 * (i % 14) : 120 + (i % 7), 0),
        );
        return fromHalves(dtype, place === "front" ? halves : halves.toReversed());
      };
      expect(roundTrip(dtype, withEscapes(limit))!.byteLength).toBe(count * codings[dtype].bytesPerElement - 1);
      expect(roundTrip(dtype, withEscapes(limit + 1))).toBeUndefined();
    }
  }
});

test("restores arbitrary bytes, or does not encode them", () => {
  const seen = { coded: 0, left: 0 };
  fc.assert(
    fc.property(
      fc.constantFrom(...dtypes),
      fc.array(fc.oneof({ weight: 5, arbitrary: fc.integer({ min: 0x3c00, max: 0x3f00 }) }, fc.nat({ max: 65_535 })), {
        maxLength: 500,
        size: "max",
      }),
      (dtype, halves) => {
        seen[roundTrip(dtype, fromHalves(dtype, halves)) === undefined ? "left" : "coded"]++;
      },
    ),
    { numRuns: 2000 },
  );
  expect(seen.coded).toBeGreaterThan(100);
  expect(seen.left).toBeGreaterThan(100);
});

test("the result does not depend on the alignment of the bytes", () => {
  const bytes = bytesOf("bf16", gaussian(5001, 3));
  const expected = codec.encode("bf16", bytes)!;
  const inside = (length: number): Uint8Array => messages.take(length + 3).subarray(3, length + 3);
  const outside = (length: number): Uint8Array => new Uint8Array(length + 1).subarray(1);
  for (const place of [inside, outside]) {
    const source = place(bytes.length);
    source.set(bytes);
    for (const otherPlace of [inside, outside]) {
      const target = otherPlace(bytes.length + 5);
      const coded = codec.encode("bf16", source, target)!;
      expect(coded.buffer).toBe(target.buffer);
      expect(coded.byteOffset).toBe(target.byteOffset);
      expect(coded).toEqual(expected);
      const restored = otherPlace(bytes.length);
      codec.decode(coded, restored);
      expect(restored).toEqual(bytes);
      const moved = place(coded.length);
      moved.set(coded);
      codec.decode(moved, restored.fill(0));
      expect(restored).toEqual(bytes);
    }
  }
});

// One octave of σ in eighths, at three scales. The number of exponents outside the window depends on the position of
// the window relative to σ.
const sigmas = [2 ** -60, 0.01, 1e10].flatMap((scale) => Array.from({ length: 8 }, (_, i) => scale * 2 ** (i / 8)));

test.each([
  ["bf16", 1.39, 1.435],
  ["f32", 1.17, 1.18],
] as const)("%s of a normal distribution: ratio at least %f", (dtype, least, most) => {
  for (const sigma of sigmas) {
    const bytes = bytesOf(dtype, gaussian(65_536, sigma));
    const ratio = bytes.byteLength / roundTrip(dtype, bytes)!.byteLength;
    expect(ratio).toBeGreaterThan(least);
    expect(ratio).toBeLessThan(most);
  }
});

test("a window chosen from a sample costs at most 2 % more than the best window, also with columns of different scales", () => {
  const scales = [1e-3, 1, 1e3, 1];
  for (const columns of [1, 2, 4, 64, 1024]) {
    // Every fourth column (with one column, every fourth section) has a different scale.
    const values = gaussian(65_536, 1, columns).map(
      (value, i) => value * scales[columns === 1 ? i >> 14 : (i % columns) % 4]!,
    );
    const bytes = bytesOf("bf16", values);
    const best = Math.min(...Array.from({ length: 250 }, (_, first) => countOutside("bf16", bytes, first)));
    const coded = codec.encode("bf16", bytes)!;
    expect(coded.byteLength).toBeLessThan(1.02 * codedBytes({ dtype: "bf16", count: 65_536, numEscapes: best }));
  }
});

test("rejects inputs that cannot be coded", () => {
  expect(() => codec.encode("f32", new Uint8Array(10))).toThrow(/10 bytes end inside a f32 element/);
  expect(() => codec.encode("bf16", new Uint8Array(100), new Uint8Array(99))).toThrow(
    /target of 99 bytes may be too small for 100/,
  );
});

const fault = (message: RegExp): unknown =>
  expect.objectContaining({
    name: "CodedPayloadError",
    code: "coded-payload",
    kind: "environment",
    message: expect.stringMatching(message),
  });

test.each([
  ["another type", 0, 3, /type 3/],
  ["type 0", 0, 0, /type 0/],
  ["the other type", 0, 2, /300 elements of f32, but 600 bytes/],
  ["a window past the last exponent", 1, 250, /begins at exponent 250/],
  ["a reserved byte", 2, 1, /must be 0/],
  ["another reserved byte", 15, 1, /must be 0/],
  ["more elements", 4, 45, /301 elements of bf16, but 600 bytes/],
  ["2^31 elements more", 7, 0x80, /2147483948 elements/],
  ["another number of escapes", 8, 200, /but its header implies/],
] as const)("coded bytes with %s are refused", (_, at, value, message) => {
  const coded = codec.encode("bf16", bytesOf("bf16", gaussian(300, 1)))!;
  coded[at] = value;
  expect(() => codec.decode(coded, new Uint8Array(600))).toThrow(fault(message));
});

test("rejects coded bytes that are truncated or too long", () => {
  const coded = codec.encode("bf16", bytesOf("bf16", gaussian(300, 1)))!;
  for (let cut = 0; cut < coded.length; cut++)
    expect(() => codec.decode(coded.subarray(0, cut), new Uint8Array(600))).toThrow(fault(/./));
  expect(() => codec.decode(Uint8Array.from([...coded, 0]), new Uint8Array(600))).toThrow(fault(/its header implies/));
  expect(() => codec.decode(coded, new Uint8Array(598))).toThrow(fault(/598 bytes are expected/));
});

test.each([
  ["in a block", 10],
  ["after the last block", 290],
] as const)("codes that contradict the escapes %s are refused", (_, element) => {
  const halves = Array.from({ length: 300 }, (_, i) => (i === element ? half(0, 7, 0) : half(0, 120, 0)));
  const coded = codec.encode("bf16", fromHalves("bf16", halves))!;
  const edited = (edit: (codes: Uint8Array) => void): Uint8Array => {
    const copy = Uint8Array.from(coded);
    edit(copy.subarray(codedHeaderBytes + 300));
    return copy;
  };
  const [own, neighbours] = [codeBits(300, element), codeBits(300, element + 1)];
  const missing = edited((codes) => (codes[own[0]!.at]! |= own[0]!.mask)); // the escape now has a window code
  expect(() => codec.decode(missing, new Uint8Array(600))).toThrow(fault(/differs from its header/));
  // the neighbors are now escapes
  const tooMany = edited((codes) => neighbours.forEach(({ at, mask }) => (codes[at]! &= ~mask)));
  expect(() => codec.decode(tooMany, new Uint8Array(600))).toThrow(fault(/differs from its header/));
  const inside = Uint8Array.from(coded);
  inside[coded.length - 1] = 120;
  expect(() => codec.decode(inside, new Uint8Array(600))).toThrow(fault(/listed as outside/));
  // Sets bit 7 of the last byte of the first plane, which is unused: there are 256 + 44 elements.
  const behind = edited((codes) => (codes[96 + 5]! |= 0x80));
  expect(() => codec.decode(behind, new Uint8Array(600))).toThrow(fault(/after the last element/));
});

test("for corrupted input, throws a typed error or writes exactly the requested number of bytes", () => {
  const around = messages.take(4096 + 2000).fill(0x77);
  const target = around.subarray(1000, 1000 + 3000);
  const originals = [
    { dtype: "bf16", bytes: bytesOf("bf16", gaussian(1500, 1)) },
    { dtype: "f32", bytes: bytesOf("f32", gaussian(750, 1)) },
  ] as const;
  const codeds = originals.map(({ dtype, bytes }) => codec.encode(dtype, bytes)!);
  const seen = { refused: 0, decoded: 0 };
  const edit = fc.record({
    at: fc.nat(),
    value: fc.nat({ max: 255 }),
    where: fc.constantFrom("header", "planes", "anywhere"),
  });
  fc.assert(
    fc.property(
      fc.nat({ max: 1 }),
      fc.array(edit, { minLength: 1, maxLength: 4 }),
      fc.option(fc.nat()),
      (which, edits, cut) => {
        const damaged = codeds[which]!.slice();
        const [planes, planeBytes] = which === 0 ? [16 + 1500, 564] : [16 + 2250, 282];
        for (const { at, value, where } of edits)
          damaged[
            where === "header" ? at % 16 : where === "planes" ? planes + (at % planeBytes) : at % damaged.length
          ] = value;
        const coded = cut === null ? damaged : damaged.subarray(0, cut % damaged.length);
        try {
          codec.decode(coded, target);
          seen.decoded++;
        } catch (error) {
          if ((error as { code?: string }).code !== "coded-payload") throw error;
          seen.refused++;
        }
      },
    ),
    { numRuns: examples(4000, 20_000) },
  );
  expect(around.subarray(0, 1000).every((byte) => byte === 0x77)).toBe(true);
  expect(around.subarray(4000).every((byte) => byte === 0x77)).toBe(true);
  expect(Math.min(seen.refused, seen.decoded)).toBeGreaterThan(examples(100, 500));
});
