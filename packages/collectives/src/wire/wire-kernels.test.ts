import { expect, test } from "vitest";
import { type MessageMemory, wasmMessageMemory } from "../message-memory.ts";
import { crc32c } from "./crc32c.ts";
import { CodedPayloadError } from "./errors.ts";
import { crc32cOf } from "./folded-crc32c.ts";
import { losslessCodec } from "./lossless-codec.ts";
import { openWireKernels } from "./wire-kernels.ts";

const openMemory = (initial = 1) => {
  const memory = new WebAssembly.Memory({ initial, maximum: 256, shared: true });
  return { memory, messages: wasmMessageMemory(memory) };
};

test("recognizes bytes of the memory, also through the memory's buffer from before it grew", () => {
  const { memory, messages } = openMemory();
  const kernels = openWireKernels({ memory, messages });
  const before = new Uint8Array(memory.buffer, 100, 10);
  memory.grow(1);
  expect(memory.buffer).not.toBe(before.buffer);
  expect(kernels.addressOf(before)).toBe(100);
  expect(kernels.addressOf(before.subarray(3))).toBe(103);
  expect(kernels.addressOf(new Uint8Array(memory.buffer, 70_000))).toBe(70_000);
});

test("does not mistake bytes of other memories for its own", () => {
  const kernels = openWireKernels(openMemory());
  const foreign = new WebAssembly.Memory({ initial: 64, maximum: 64, shared: true });
  expect(kernels.addressOf(new Uint8Array(foreign.buffer, 100))).toBeUndefined();
  expect(kernels.addressOf(new Uint8Array(new SharedArrayBuffer(2 ** 22), 100))).toBeUndefined();
  expect(kernels.addressOf(new Uint8Array(2 ** 22))).toBeUndefined();
  for (const value of [0x5a, 0xa5]) {
    // Memory filled with the probe value that `addressOf` writes to the kernels' memory.
    const alike = new Uint8Array(new SharedArrayBuffer(2 ** 22)).fill(value);
    expect(kernels.addressOf(alike)).toBeUndefined();
  }
  // This buffer ends before the kernels' memory begins. Its bytes must be copied, not read at a wrong position.
  const old = new WebAssembly.Memory({ initial: 1, maximum: 2, shared: true });
  expect(kernels.addressOf(new Uint8Array(old.buffer))).toBeUndefined();
});

test("in a fully used memory, writes only what was allocated to it", () => {
  const { memory, messages } = openMemory(8);
  new Uint8Array(memory.buffer).fill(0xcd);
  const kernels = openWireKernels({ memory, messages });
  const [checksum, codec] = [crc32cOf(kernels), losslessCodec(kernels)];
  const world = new Uint8Array(memory.buffer, 0, 8 * 65_536);
  checksum(world.subarray(5, 300_000));
  const source = new Float32Array(world.buffer, 1024, 1000).fill(0.5);
  const coded = codec.encode(
    "f32",
    new Uint8Array(world.buffer, 1024, 4000),
    new Uint8Array(world.buffer, 100_001, 4000),
  )!;
  codec.decode(coded, new Uint8Array(world.buffer, 50_003, 4000));
  expect(new Float32Array(world.slice(50_003, 54_003).buffer)).toEqual(Float32Array.from(source));
  for (const [from, to] of [
    [1024, 5024],
    [100_001, 100_001 + coded.byteLength],
    [50_003, 54_003],
  ] as const)
    world.fill(0xcd, from, to);
  expect(world.every((byte) => byte === 0xcd)).toBe(true);
});

test("at the end of a memory, accesses nothing beyond it", () => {
  const memory = new WebAssembly.Memory({ initial: 4, maximum: 4, shared: true });
  let next = 0;
  const messages: MessageMemory = {
    take: (byteLength) =>
      new Uint8Array(memory.buffer, (next += byteLength + 64 - (byteLength % 64)) - byteLength, byteLength),
    give: () => undefined,
  };
  const kernels = openWireKernels({ memory, messages });
  const [checksum, codec] = [crc32cOf(kernels), losslessCodec(kernels)];
  const atEnd = (byteLength: number): Uint8Array => new Uint8Array(memory.buffer, 4 * 65_536 - byteLength, byteLength);
  for (const byteLength of [512, 777, 2047, 2048, 20_001])
    expect(checksum(atEnd(byteLength))).toBe(crc32c(atEnd(byteLength).slice()));

  for (const count of [100, 128, 300, 5000]) {
    const floats = Float32Array.from({ length: count }, (_, i) => 2 ** (i % 7) * (i % 40 === 0 ? 1e9 : 1));
    const source = atEnd(4 * count);
    source.set(new Uint8Array(floats.buffer));
    const coded = codec.encode("f32", source)!;
    // The memory is in use up to its end.
    expect(codec.encode("f32", new Uint8Array(floats.buffer), atEnd(4 * count))).toEqual(coded);
    const restored = atEnd(4 * count).fill(0);
    codec.decode(coded, restored);
    expect(new Float32Array(restored.slice().buffer)).toEqual(floats);
    // If the codes need more exponents than there are, an unchecked decoder would read beyond the memory.
    const damaged = atEnd(coded.byteLength);
    damaged.set(coded);
    damaged.fill(0, 16 + 3 * count, 16 + 3 * count + 3 * Math.ceil(count / 8));
    expect(() => codec.decode(damaged, new Uint8Array(4 * count))).toThrow(CodedPayloadError);
  }
});
