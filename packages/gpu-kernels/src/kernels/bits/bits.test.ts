import { NdArray } from "@skein/tensor-core";
import { normalArray } from "@skein/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { hasAdapter, openBackend } from "../../../test/gpu.ts";
import { runPlan } from "../../../test/run-plan.ts";
import type { WebGpuBackend } from "../../webgpu-backend.ts";
import { packBitsPass } from "./pack-bits.ts";
import { unpackBitsPass } from "./unpack-bits.ts";

describe("bit packing", () => {
  test("chooses the variant by the row length", () => {
    expect([64, 36, 35].map((count) => packBitsPass([3, count]).label)).toEqual([
      "pack-bits whole words",
      "pack-bits whole nibbles",
      "pack-bits bits",
    ]);
    expect([48, 36, 35].map((count) => unpackBitsPass([3, count]).label)).toEqual([
      "unpack-bits half words",
      "unpack-bits whole nibbles",
      "unpack-bits bits",
    ]);
  });
});

describe.skipIf(!hasAdapter)("bit packing on WebGPU", () => {
  let backend: WebGpuBackend;
  beforeAll(async () => {
    backend = await openBackend();
  });
  afterAll(() => backend.close());

  test.each([1, 3, 4, 31, 32, 33, 36, 48, 63, 64, 1000, 4096, 5001])(
    "rows of %i bools are unchanged after a round trip",
    async (count) => {
      const rows = 7;
      const bools = normalArray([rows, count], count, "bool");
      const words = Math.ceil(count / 32);
      const [packed] = await runPlan(
        backend.device,
        { passes: [packBitsPass([rows, count])] },
        [bools],
        [{ dtype: "u32", shape: [rows, words] }],
      );
      const array = new NdArray("u32", [rows, words], new Uint32Array(packed!));
      const expected = new Uint32Array(rows * words);
      bools.data.forEach((bit, i) => {
        expected[Math.floor(i / count) * words + Math.floor((i % count) / 32)]! |= bit << ((i % count) % 32);
      });
      expect(array.data).toEqual(expected);
      // Bits after the last element are undefined.
      const noisy = new NdArray(
        "u32",
        [rows, words],
        expected.map((word, i) => (count % 32 > 0 && i % words === words - 1 ? word | (-1 << (count % 32)) : word)),
      );
      const [unpacked] = await runPlan(
        backend.device,
        { passes: [unpackBitsPass([rows, count])] },
        [noisy],
        [{ dtype: "bool", shape: [rows, count] }],
      );
      expect(new Uint8Array(unpacked!)).toEqual(bools.data);
    },
  );
});
