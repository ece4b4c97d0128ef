import fc from "fast-check";
import { expect, test } from "vitest";
import { wasmMessageMemory } from "../message-memory.ts";
import { crc32c, maskedCrc32c } from "./crc32c.ts";
import { crc32cOf } from "./folded-crc32c.ts";
import { openWireKernels } from "./wire-kernels.ts";

const text = (characters: string): Uint8Array => new TextEncoder().encode(characters);
const noise = (length: number, seed = 1): Uint8Array => {
  let state = seed;
  return Uint8Array.from({ length }, () => (state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0) >>> 24);
};

test.each([
  ["32 zeros", new Uint8Array(32), 0x8a9136aa],
  ["32 ones", new Uint8Array(32).fill(255), 0x62a8ab43],
  ["0 to 31", Uint8Array.from({ length: 32 }, (_, i) => i), 0x46dd794e],
  ["31 to 0", Uint8Array.from({ length: 32 }, (_, i) => 31 - i), 0x113fdb5c],
  ["nine digits", text("123456789"), 0xe3069283],
  ["nothing", new Uint8Array(0), 0],
])("RFC 3720: %s", (_, bytes, expected) => {
  expect(crc32c(bytes)).toBe(expected);
  expect(crc32cOf()(bytes)).toBe(expected);
});

test("a masked checksum is rotated by 15 and shifted by TensorFlow's constant", () => {
  expect(maskedCrc32c(text("123456789"))).toBe((((0xe3069283 >>> 15) | (0xe3069283 << 17)) + 0xa282ead8) >>> 0);
});

test("continues the checksum of a first part over the second", () => {
  const fast = crc32cOf();
  fc.assert(
    fc.property(fc.nat({ max: 3000 }), fc.nat(), fc.nat(), (length, cut, seed) => {
      const bytes = noise(length, seed);
      const [head, tail] = [bytes.subarray(0, cut % (length + 1)), bytes.subarray(cut % (length + 1))];
      const whole = crc32c(bytes);
      expect(crc32c(tail, crc32c(head))).toBe(whole);
      expect(fast(tail, fast(head))).toBe(whole);
    }),
  );
});

test("folded and plain checksums agree for every length up to 4 KiB and around the blocks, in both memories", () => {
  const memory = new WebAssembly.Memory({ initial: 1, maximum: 65_536, shared: true });
  const messages = wasmMessageMemory(memory);
  const fast = crc32cOf(openWireKernels({ memory, messages }));
  const elsewhere = noise(200_010);
  const home = messages.take(elsewhere.length);
  home.set(elsewhere);
  const blocks = [16_384, 32_768, 65_536, 131_072].flatMap((length) =>
    [-64, -1, 0, 1, 15, 16, 63, 64, 895, 896, 960, 1000].map((more) => length + more),
  );
  for (const length of [...Array.from({ length: 4096 }, (_, i) => i), ...blocks, 200_000]) {
    const offset = length % 11;
    const [inside, outside] = [home, elsewhere].map((bytes) => bytes.subarray(offset, offset + length)) as [
      Uint8Array,
      Uint8Array,
    ];
    const expected = crc32c(outside, length);
    if (fast(inside, length) !== expected || fast(outside, length) !== expected) expect.fail(`length ${length}`);
  }
  expect(home).toEqual(elsewhere); // The input is only read.
});

test("a folded checksum detects every changed bit", () => {
  const fast = crc32cOf();
  const bytes = noise(5000);
  const sums = new Set([fast(bytes)]);
  for (let bit = 0; bit < 40_000; bit += 7) {
    bytes[bit >> 3]! ^= 1 << (bit & 7);
    sums.add(fast(bytes));
    bytes[bit >> 3]! ^= 1 << (bit & 7);
  }
  expect(sums.size).toBe(1 + Math.ceil(40_000 / 7));
});
