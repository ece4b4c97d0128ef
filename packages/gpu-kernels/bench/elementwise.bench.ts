import {
  add,
  cast,
  divide,
  gelu,
  greater,
  multiply,
  NdArray,
  packBits,
  power,
  quantize,
  randomBits,
  randomKey,
  relu,
  rotary,
  sin,
  sqrt,
  square,
  subtract,
  type Tensor,
  unpackBits,
  where,
} from "@skein/tensor-core";
import { benchKernels, type KernelRow } from "./kernel-bench.ts";

// Measures elementwise programs and generators. Each program is one pass over memory, so the most important result is
// the fraction of the copy ceiling.

const million = 10 ** 6;

/** Returns an array with values that are cheap to generate. */
const values = (count: number, scale = 1, width = count): NdArray =>
  new NdArray(
    "f32",
    [count / width, width],
    Float32Array.from({ length: count }, (_, i) => scale * (((i * 7919) % 10007) / 5003.5 - 1)),
  );

const positive = (count: number): NdArray => new NdArray("f32", [1, count], new Float32Array(count).fill(0.01));

const bools = (count: number): NdArray =>
  new NdArray(
    "bool",
    [count],
    Uint8Array.from({ length: count }, (_, i) => ((i * 7919) % 10007) & 1),
  );

const words = (count: number): NdArray =>
  new NdArray(
    "u32",
    [count],
    Uint32Array.from({ length: count }, (_, i) => Math.imul(i, 0x9e3779b9)),
  );

/**
 * Computes one step of Adam with decoupled decay. Inputs: parameter, gradient and two moments. Results: parameter and
 * moments.
 */
const adamStep = (p: Tensor, g: Tensor, m: Tensor, v: Tensor): readonly Tensor[] => {
  const m1 = add(multiply(m, 0.9), multiply(g, 0.1));
  const v1 = add(multiply(v, 0.999), multiply(square(g), 0.001));
  const step = divide(multiply(m1, 1 / 0.19), add(sqrt(multiply(v1, 1 / 0.002)), 1e-8));
  return [subtract(multiply(p, 0.9999), multiply(step, 1e-3)), m1, v1];
};

const unary = (name: string, fn: (x: Tensor) => Tensor, flops: number, scale = 4): KernelRow => ({
  name: `${name}, 10M`,
  fn: (x) => fn(x!),
  inputs: () => [values(10 * million, scale)],
  flops: flops * 10 * million,
  bytes: 80 * million,
});

await benchKernels("elementwise programs and generators", [
  {
    name: "Adam step, 10M",
    fn: (p, g, m, v) => adamStep(p!, g!, m!, v!),
    inputs: () => [
      values(10 * million),
      values(10 * million, 0.01),
      values(10 * million, 0.01),
      positive(10 * million),
    ],
    flops: 160 * million,
    bytes: 280 * million,
  },
  unary("copy and scale", (x) => multiply(x, 2), 1),
  unary("gelu", (x) => gelu(x), 20),
  unary("gelu by tanh", (x) => gelu(x, { approximate: "tanh" }), 20),
  unary("sine", sin, 20),
  unary("power", (x) => power(add(x, 8), 1.7), 60),
  unary("quotient", (x) => divide(1, add(x, 8)), 2),
  {
    name: "bias and relu, [10000, 1024]",
    fn: (x, b) => relu(add(x!, b!)),
    inputs: () => [
      values(10_240_000, 1, 1024),
      new NdArray(
        "f32",
        [1024],
        Float32Array.from({ length: 1024 }, (_, i) => i / 1024 - 0.5),
      ),
    ],
    flops: 2 * 10_240_000,
    bytes: 8 * 10_240_000,
  },
  {
    name: "bias and relu, [10000, 1023]",
    fn: (x, b) => relu(add(x!, b!)),
    inputs: () => [
      values(10_230_000, 1, 1023),
      new NdArray(
        "f32",
        [1023],
        Float32Array.from({ length: 1023 }, (_, i) => i / 1023 - 0.5),
      ),
    ],
    flops: 2 * 10_230_000,
    bytes: 8 * 10_230_000,
  },
  {
    name: "normalised rows, [10000, 1024]",
    fn: (x, m, s, w) => multiply(multiply(subtract(x!, m!), s!), w!),
    inputs: () => [values(10_240_000, 1, 1024), values(10_000, 1, 1), values(10_000, 1, 1), values(1024)],
    flops: 3 * 10_240_000,
    bytes: 8 * 10_240_000,
  },
  {
    name: "f32 to f16, 10M",
    fn: (x) => cast(x!, "f16"),
    inputs: () => [values(10 * million)],
    flops: 0,
    bytes: 60 * million,
  },
  {
    name: "quantize to 8 bits, [1000, 10000]",
    fn: (x) => Object.values(quantize(x!)),
    inputs: () => [values(10 * million, 1, 10_000)],
    flops: 40 * million,
    bytes: 130 * million,
    tolerance: 1, // a quotient close to a tie may be rounded up or down
  },
  {
    name: "sign bits, 10M",
    fn: (x) => packBits(greater(x!, 0)),
    inputs: () => [values(10 * million)],
    flops: 10 * million,
    bytes: 61 * million,
  },
  {
    name: "pack-bits, 32M",
    fn: (x) => packBits(x!),
    inputs: () => [bools(32 * million)],
    flops: 0,
    bytes: 36 * million,
  },
  {
    name: "unpack-bits, 32M",
    fn: (x) => unpackBits(x!, 32 * million),
    inputs: () => [words(million)],
    flops: 0,
    bytes: 36 * million,
  },
  {
    name: "signs from bits, 10M",
    fn: (x) => where(unpackBits(x!, 9_999_968), 0.5, -0.5),
    inputs: () => [words(312_499)],
    flops: 0,
    bytes: 61 * million,
  },
  {
    name: "random-bits, 10M",
    fn: (key) => randomBits(key!, [10 * million]),
    inputs: () => [randomKey(7)],
    flops: 400 * million,
    bytes: 40 * million,
  },
  {
    name: "rotary, [8, 12, 1024, 64]",
    fn: (x) => rotary(x!),
    inputs: () => [new NdArray("f32", [8, 12, 1024, 64], values(8 * 12 * 1024 * 64).data as Float32Array<ArrayBuffer>)],
    flops: 3 * 8 * 12 * 1024 * 64,
    bytes: 8 * 8 * 12 * 1024 * 64,
  },
]);
