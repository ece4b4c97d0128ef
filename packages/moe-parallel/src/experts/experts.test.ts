import {
  concat,
  evaluate,
  gelu,
  matmul,
  multiply,
  NdArray,
  referenceBackend,
  reshape,
  silu,
  slice,
  type Tensor,
} from "@skein/tensor-core";
import { expect, test } from "vitest";
import type { Experts } from "./experts.ts";
import { geluExperts } from "./gelu-experts.ts";
import { swigluExperts } from "./swiglu-experts.ts";

const [width, hidden] = [3, 4];
const sizes = { width, hidden, deviation: 1, outputDeviation: 0.5 };

type Params = Readonly<Record<string, Tensor>>;

const kinds: readonly {
  readonly name: string;
  readonly experts: Experts<Params>;
  readonly names: readonly string[];
  readonly formula: (x: Tensor, own: (name: string) => Tensor) => Tensor;
}[] = [
  {
    name: "geluExperts",
    experts: geluExperts(sizes) as unknown as Experts<Params>,
    names: ["up_DF", "down_FD"],
    formula: (x, own) => matmul(gelu(matmul(x, own("up_DF"))), own("down_FD")),
  },
  {
    name: "swigluExperts",
    experts: swigluExperts(sizes) as unknown as Experts<Params>,
    names: ["gate_DF", "up_DF", "down_FD"],
    formula: (x, own) => matmul(multiply(silu(matmul(x, own("gate_DF"))), matmul(x, own("up_DF"))), own("down_FD")),
  },
];

const wave = (shape: readonly number[], seed: number): NdArray =>
  NdArray.from(
    Array.from({ length: shape.reduce((a, b) => a * b, 1) }, (_, i) => Math.sin(seed * (i + 1))),
    shape,
    "f32",
  );

test.each(kinds)("$name: applies each expert to its own rows, including one without rows", async (kind) => {
  const counts = [2, 0, 3];
  const shapes = { gate_DF: [3, width, hidden], up_DF: [3, width, hidden], down_FD: [3, hidden, width] };
  const params = Object.fromEntries(kind.names.map((name, i) => [name, wave(shapes[name as "up_DF"], 1.1 + i / 3)]));
  const all = (own: Params, rows: Tensor, counted: Tensor): Tensor => kind.experts.apply(own, rows, counted);
  const oneByOne = (own: Params, rows: Tensor): Tensor => {
    let begin = 0;
    return concat(
      counts.map((count, e) => {
        begin += count;
        return kind.formula(slice(rows, [begin - count], [begin]), (name) => {
          const weight = own[name]!;
          return reshape(slice(weight, [e], [e + 1]), weight.shape.slice(1));
        });
      }),
    );
  };
  const x = wave([5, width], 0.7);
  const backend = referenceBackend();
  const got = await evaluate(all, backend)(params, x, NdArray.from(counts, [3], "i32"));
  const expected = await evaluate(oneByOne, backend)(params, x);
  got.toNumbers().forEach((value, i) => expect(value).toBeCloseTo(expected.toNumbers()[i]!, 5));
});

test.each(kinds)("$name initializes matrices with the given standard deviations, all different", async (kind) => {
  const initial = await evaluate(
    (key: Tensor) => kind.experts.init(key),
    referenceBackend(),
  )(NdArray.from([1, 2], [2], "u32"));
  const numbers = kind.names.map((name) => initial[name]!.toNumbers());
  expect(Object.keys(initial).toSorted()).toEqual(kind.names.toSorted());
  expect(new Set(numbers.map((own) => own[0])).size).toBe(kind.names.length);
  const deviation = (own: readonly number[]): number =>
    Math.sqrt(own.reduce((total, value) => total + value ** 2, 0) / own.length);
  expect(deviation(numbers.at(-1)!)).toBeLessThan(0.9);
  expect(deviation(numbers[0]!)).toBeGreaterThan(0.6);
});

test("rejects invalid sizes", () => {
  expect(() => geluExperts({ width, hidden: 0 })).toThrow(/geluExperts: hidden is 0; use a whole number from 1/);
  expect(() => swigluExperts({ width: 2.5, hidden })).toThrow(/swigluExperts: width is 2.5/);
});
