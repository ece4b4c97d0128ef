import { describe, expect, it } from "vitest";
import {
  add,
  bitcast,
  cast,
  divide,
  full,
  identity,
  multiply,
  negate,
  stopGradient,
  subtract,
  where,
} from "../functions/elementwise.ts";
import { matmul } from "../functions/linear.ts";
import { broadcastTo, concat, pad, reshape, slice, transpose } from "../functions/movement.ts";
import { scatterAdd } from "../functions/indexing.ts";
import { sum, topK } from "../functions/reduce.ts";
import type { Tensor } from "../graph/tensor.ts";
import { trace } from "../tracing/trace.ts";
import { printGraph } from "../inspection/print.ts";
import { validateGraph } from "../inspection/validate.ts";
import { eliminateDeadCode } from "./dead-code.ts";
import { simplify } from "./simplify.ts";
import { sinkSlices } from "./sink-slices.ts";

const matrix = { dtype: "f32", shape: [3, 4] } as unknown as Tensor;

/** Returns the simplified graph of a function of two 3×4 matrices as text: one line per node, without inputs. */
const simplified = (fn: (x: Tensor, y: Tensor) => Tensor | readonly Tensor[], pass = simplify): string[] => {
  const graph = eliminateDeadCode(pass(trace(fn, [matrix, matrix]).graph));
  validateGraph(graph);
  return printGraph(graph)
    .split("\n")
    .filter((line) => !line.includes("input()"));
};

const opsOf = (fn: (x: Tensor, y: Tensor) => Tensor): string[] => {
  const graph = eliminateDeadCode(simplify(trace(fn, [matrix, matrix]).graph));
  validateGraph(graph);
  return graph.nodes.filter(({ op }) => op !== "input").map(({ op }) => op);
};

const becomesOperand: { readonly [name: string]: (x: Tensor, y: Tensor) => Tensor } = {
  "identity and stop-gradient": (x) => identity(stopGradient(x)),
  "reshape there and back": (x) => reshape(reshape(x, [12]), [3, 4]),
  "bits there and back": (x) => bitcast(bitcast(bitcast(x, "u32"), "i32"), "f32"),
  "transpose there and back": (x) => transpose(transpose(x)),
  "x · 1, x / 1, x + 0": (x) => add(divide(multiply(1, x), 1), 0),
  "double negation": (x) => negate(negate(x)),
  "where with a known condition": (x, y) => where(full([3, 4], 1, "bool"), x, y),
  "where with equal branches": (x, y) => where(cast(y, "bool"), x, x),
  "sum over a dimension of size 1": (x) => reshape(sum(reshape(x, [3, 1, 4]), { dims: [1] }), [3, 4]),
  "a bucket unpacked": (x, y) =>
    reshape(slice(concat([reshape(y, [12]), reshape(x, [12])], { dim: 0 }), [12], [24]), [3, 4]),
  "slices packed again": (x) => concat([slice(x, [0], [1]), slice(x, [1], [3])], { dim: 0 }),
  "concat with nothing": (x) => concat([slice(x, [0], [0]), x], { dim: 0 }),
};

describe("simplify", () => {
  it.each(Object.entries(becomesOperand))("sees through %s", (_, fn) => {
    expect(simplified(fn)).toEqual(["return %0"]);
  });

  it("drops casts there and back through a wider dtype, not through a narrower one", () => {
    for (const [own, through, kept] of [
      ["f16", "f32", 0],
      ["bool", "i32", 0],
      ["u8", "f32", 0],
      ["f32", "f16", 2],
      ["i32", "f32", 2],
      ["i32", "i32", 0],
    ] as const) {
      const { graph } = trace(
        (x: Tensor) => cast(cast(x, through), own),
        [{ dtype: own, shape: [3] } as unknown as Tensor],
      );
      expect(
        eliminateDeadCode(simplify(graph)).nodes.filter(({ op }) => op === "cast"),
        `${own} → ${through}`,
      ).toHaveLength(kept);
    }
  });

  it("turns transposed operands of a product into flags", () => {
    expect(simplified((x, y) => matmul(transpose(x), y))).toEqual([
      "%2 = matmul(%0, %1) f32[4,4] {transposeA: true}",
      "return %2",
    ]);
    expect(simplified((x, y) => matmul(x, transpose(y)))).toEqual([
      "%2 = matmul(%0, %1) f32[3,3] {transposeB: true}",
      "return %2",
    ]);
    expect(simplified((x, y) => matmul(transpose(transpose(x)), y, { transposeB: true }))).toEqual([
      "%2 = matmul(%0, %1) f32[3,3] {transposeB: true}",
      "return %2",
    ]);
  });

  it("folds constants through arithmetic, movement and sums", () => {
    expect(
      simplified(() => sum(add(transpose(multiply(full([3, 4], 2), 3)), broadcastTo(full([], 0.5), [4, 3])))),
    ).toEqual(["%2 = constant() f32[] {value: 78}", "return %2"]);
  });

  it("rounds folded integers as the dtype does", () => {
    expect(simplified(() => add(full([], 2 ** 31 - 1, "i32"), full([], 1, "i32")))).toEqual([
      "%2 = constant() i32[] {value: -2147483648}",
      "return %2",
    ]);
  });

  it("composes slices with strides, and turns a broadcast without repetition into a reshape", () => {
    expect(simplified((x) => slice(slice(x, [0, 1], [3, 4], [2, 1]), [1, 0], [2, 3], [1, 2]))[0]).toBe(
      "%2 = slice(%0) f32[1,2] {starts: [2, 1], ends: [3, 4], strides: [2, 2]}",
    );
    expect(simplified((x) => broadcastTo(x, [1, 3, 4]))[0]).toBe("%2 = reshape(%0) f32[1,3,4]");
  });

  it("computes before broadcasting", () => {
    const lines = simplified((x) => {
      const row = slice(x, [0, 0], [1, 4]);
      return multiply(broadcastTo(row, [3, 4]), 2);
    });
    expect(lines).toEqual([
      "%2 = slice(%0) f32[1,4] {starts: [0, 0], ends: [1, 4], strides: [1, 1]}",
      "%3 = constant() f32[1,4] {value: 2}",
      "%4 = multiply(%2, %3) f32[1,4]",
      "%5 = broadcast-to(%4) f32[3,4]",
      "return %5",
    ]);
  });

  it("turns a contiguous pad into a concat, and no other", () => {
    expect(
      opsOf((x) =>
        pad(x, [
          [1, 2],
          [0, 0],
        ]),
      ),
    ).toEqual(["constant", "constant", "concat"]);
    expect(
      opsOf((x) =>
        pad(reshape(x, [1, 12]), [
          [0, 0],
          [0, 4],
        ]),
      ),
    ).toEqual(["reshape", "constant", "concat"]);
    expect(
      opsOf((x) =>
        pad(x, [
          [0, 0],
          [0, 1],
        ]),
      ),
    ).toEqual(["pad"]);
    expect(
      opsOf((x) =>
        pad(x, [
          [1, 1],
          [1, 1],
        ]),
      ),
    ).toEqual(["pad"]);
  });

  it("subtracts scattered values in place, if positions are unique", () => {
    const kept = (base: number) => (x: Tensor) => {
      const flat = reshape(x, [12]);
      const [values, indices] = topK(flat, 3, { by: "magnitude", sorted: false });
      return subtract(flat, scatterAdd(full([12], base), indices, values));
    };
    expect(opsOf(kept(0))).toEqual(["reshape", "top-k", "negate", "scatter-add"]);
    expect(opsOf(kept(1))).toContain("subtract");
    expect(
      opsOf((x, y) =>
        subtract(reshape(x, [12]), scatterAdd(full([12], 0), cast(reshape(y, [12]), "i32"), reshape(x, [12]))),
      ),
    ).toContain("subtract");
  });

  it("keeps a pad that adds entries, and a product with zero, which could be NaN", () => {
    expect(
      simplified((x) =>
        multiply(
          pad(x, [
            [0, 0],
            [0, 1],
          ]),
          0,
        ),
      ),
    ).toHaveLength(4);
  });
});

describe("sinkSlices", () => {
  it("moves the scaling of a bucket after its unpacking", () => {
    const lines = simplified((x, y) => {
      const mean = multiply(concat([reshape(x, [12]), reshape(y, [12])], { dim: 0 }), 0.5);
      return [slice(mean, [0], [12]), slice(mean, [12], [24])];
    }, sinkSlices);
    expect(lines.filter((line) => line.includes("multiply"))).toEqual([
      expect.stringContaining("f32[12]"),
      expect.stringContaining("f32[12]"),
    ]);
  });

  it("adds no work: overlapping slices and other users leave the order as it is", () => {
    const scaled = (x: Tensor): Tensor => multiply(reshape(x, [12]), 0.5);
    const overlapping = (x: Tensor): Tensor[] => [slice(scaled(x), [0], [12]), slice(scaled(x), [1], [12])];
    const shared = (x: Tensor): Tensor[] => {
      const value = scaled(x);
      return [slice(value, [0], [8]), slice(value, [1], [8])];
    };
    expect(simplified(shared, sinkSlices).filter((line) => line.includes("multiply"))).toEqual([
      expect.stringContaining("f32[12]"),
    ]);
    expect(simplified(overlapping, sinkSlices).filter((line) => line.includes("multiply"))).toHaveLength(2);
  });
});
