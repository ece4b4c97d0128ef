// Measures the conversion of bools to bits and back, positions of true elements, and histograms, compared with a plain
// read.
// Run: node bench/counting.bench.ts
import {
  type DeviceArray,
  full,
  histogram,
  jit,
  NdArray,
  nonzero,
  packBits,
  type Tensor,
  unpackBits,
} from "@skein/tensor-core";
import { measure, printMeasurement } from "@skein/measuring";
import { normalArray, seeded } from "@skein/testing";
import { createCpuBackend } from "../src/index.ts";

const count = 25_000_000;
const backend = await createCpuBackend();

// Gradients are roughly normally distributed, so the data is a block of a million normal values, repeated.
const block = normalArray([1_000_000], 7).data as Float32Array;
const values = Float32Array.from({ length: count }, (_, i) => block[i % block.length]!);

const target = new Float32Array(count);
const copy = (): void => target.set(values);
copy();
if (target.at(-1) !== values.at(-1)) throw new Error("the copy is not one");
printMeasurement("copy of 25M f32", await measure(copy), { amount: 8 * count, unit: "B" });

/** Runs a kernel once, passes its results to `check`, then times the kernel. */
const bench = async (
  name: string,
  bytes: number,
  fn: (x: Tensor) => readonly Tensor[],
  x: NdArray,
  check: (results: readonly NdArray[]) => void,
): Promise<void> => {
  const input = backend.upload(x);
  const run = jit(fn, backend);
  const results = (await run(input)) as readonly DeviceArray[];
  check(await Promise.all(results.map((result) => backend.download(result))));
  for (const result of results) backend.free(result);
  const call = async (): Promise<void> => {
    for (const result of (await run(input)) as readonly DeviceArray[]) backend.free(result);
  };
  printMeasurement(name, await measure(call, { samples: 9 }), { amount: bytes, unit: "B" });
  backend.free(input);
};

const fail = (what: string): never => {
  throw new Error(`not timed, because it is wrong: ${what}`);
};

for (const share of [0.001, 0.01, 0.5]) {
  const random = seeded(3);
  const bools = Uint8Array.from({ length: count }, () => (random() < share ? 1 : 0));
  const total = bools.reduce((sum, bit) => sum + bit, 0);
  await bench(
    `nonzero, ${100 * share} % of 25M`,
    count + 4 * total,
    (mask) => Object.values(nonzero(mask, total)),
    new NdArray("bool", [count], bools),
    ([indices, found]) => {
      const places = indices!.data as Int32Array;
      if (found!.data[0] !== total || places.some((at, i) => bools[at] !== 1 || (i > 0 && at <= places[i - 1]!)))
        fail("nonzero");
    },
  );
}

const bits = Uint8Array.from({ length: count }, (_, i) => Math.imul(i, 0x9e3779b9) >>> 31);
await bench(
  "bools to bits and back, 25M",
  2 * (count + count / 8),
  (mask) => [unpackBits(packBits(mask), count)],
  new NdArray("bool", [count], bits),
  ([back]) => back!.data.some((bit, i) => bit !== bits[i]) && fail("bits"),
);

for (const bins of [16, 256, 4096, 65_536]) {
  const range = new NdArray("f32", [count], values);
  await bench(
    `histogram of 25M, ${bins} bins`,
    4 * count,
    (x) => [histogram(x, full([], -3), full([], 3), bins)],
    range,
    ([counts]) => {
      const expected = new Int32Array(bins);
      const scale = Math.fround(bins / 6);
      for (const x of values)
        if (x >= -3 && x <= 3) expected[Math.min(bins - 1, Math.floor(Math.fround(Math.fround(x + 3) * scale)))]!++;
      if (counts!.data.some((own, i) => own !== expected[i])) fail("histogram");
    },
  );
}
