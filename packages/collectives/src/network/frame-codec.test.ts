import { expect, test } from "vitest";
import { losslessCodec } from "../wire/lossless-codec.ts";
import { codesThatPay, frameCodec, measureCodec } from "./frame-codec.ts";

const codec = losslessCodec();

test("encodes only the given dtypes, and decodes them without loss", () => {
  const frames = frameCodec(codec, (dtype) => dtype === "bf16");
  const bytes = new Uint8Array(Float32Array.from({ length: 4096 }, (_, i) => Math.sin(i)).buffer);
  const bf16 = bytes.filter((_, i) => (i & 2) === 2);
  expect(frames.encode(bytes, "f32")).toBeUndefined();
  expect(frames.encode(bytes, "i32")).toBeUndefined();
  expect(frames.encode(bytes)).toBeUndefined();
  const coded = frames.encode(bf16, "bf16")!;
  expect(coded.byteLength).toBeLessThan(bf16.byteLength);
  const target = new Uint8Array(bf16.byteLength);
  frames.decode(coded, target);
  expect(target).toEqual(bf16);
});

test("measures by the given clock", () => {
  let time = 0;
  const { ratio, encodeBytesPerSecond, decodeBytesPerSecond } = measureCodec(
    codec,
    "bf16",
    65_536,
    () => (time += 0.5),
  );
  expect([encodeBytesPerSecond, decodeBytesPerSecond]).toEqual([65_536 / 0.0005, 65_536 / 0.0005]);
  expect(ratio).toBeGreaterThan(1.35);
});

test("encodes for slow links, and not for fast and unknown ones", () => {
  expect((["bf16", "f32"] as const).map(codesThatPay(codec, 65_536, 1e6))).toEqual([true, true]);
  expect((["bf16", "f32"] as const).map(codesThatPay(codec, 65_536, 1e12))).toEqual([false, false]);
  expect((["bf16", "f32"] as const).map(codesThatPay(codec, 65_536, undefined))).toEqual([false, false]);
});
