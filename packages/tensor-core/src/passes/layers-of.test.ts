import { describe, expect, it } from "vitest";
import { tap, type Taps } from "../autodiff/tap.ts";
import { valueAndGrad } from "../autodiff/vjp.ts";
import { conv2d } from "../functions/convolution.ts";
import { add, cast, multiply, stopGradient } from "../functions/elementwise.ts";
import { relu } from "../functions/activation.ts";
import { groupedMatmul } from "../functions/grouped-matmul.ts";
import { embedding } from "../functions/indexing.ts";
import { matmul } from "../functions/linear.ts";
import { slice, reshape, transpose } from "../functions/movement.ts";
import { layerNorm } from "../functions/normalisation.ts";
import { sum } from "../functions/reduce.ts";
import { type Graph, type ValueRef, valueKey } from "../graph/graph.ts";
import type { Tensor } from "../graph/tensor.ts";
import { trace } from "../tracing/trace.ts";
import { operators } from "../ops/table.ts";
import { layersOf } from "./layers-of.ts";

const f32 = (...shape: number[]) => ({ dtype: "f32" as const, shape });

/** Returns the layers of a loss function, and its tapped values by key. */
const found = (fn: (params: Tensor[], ...rest: Tensor[]) => Tensor, params: unknown[], rest: unknown[] = []) => {
  let taps: Taps = {};
  const traced = trace(
    (own: Tensor[], ...others: Tensor[]) => {
      const result = valueAndGrad(fn, { taps: true })(own, ...others);
      taps = result.taps;
      return [result.value, result.grads];
    },
    [params, ...rest] as never,
  );
  return { graph: traced.graph, layers: layersOf(traced), taps };
};

/** Returns the key of the original value before reshapes, transposes and casts. */
const behind = (graph: Graph, ref: ValueRef): string => {
  const node = graph.nodes[ref.node]!;
  return operators[node.op]?.rearranges === true && node.inputs.length === 1
    ? behind(graph, node.inputs[0]!)
    : valueKey(ref);
};

describe("layersOf", () => {
  it("finds input, output gradient and bias of linear layers, equal to taps", () => {
    const { graph, layers, taps } = found(
      ([w1, b1, w2], x) => {
        const h = relu(add(tap("y1", matmul(tap("a1", x!), w1!)), b1!));
        // Covers leading dimensions, a transposed weight, and an f16 weight.
        const a = reshape(tap("a2", h), [2, 2, 5]);
        const y = matmul(cast(a, "f16"), transpose(cast(w2!, "f16")));
        return sum(multiply(tap("y2", cast(y, "f32")), 2));
      },
      [f32(3, 5), f32(5), f32(7, 5)],
      [f32(4, 3)],
    );
    const [w1, b1, w2] = layers;
    expect(layers.map(({ unresolved }) => unresolved)).toEqual([[], [], []]);
    expect(w1!.uses.map(({ kind, operand, path, bias }) => [kind, operand, path.length, bias])).toEqual([
      ["linear", 1, 0, b1!.weight],
    ]);
    expect(b1).toMatchObject({ uses: [], biasOf: [w1!.uses[0]!.node] });
    expect(w2!.uses[0]!.path.map((id) => graph.nodes[id]!.op)).toEqual(["cast", "transpose"]);
    expect([w1!, w2!].map(({ uses }) => behind(graph, uses[0]!.input))).toEqual(
      [taps["a1"]!, taps["a2"]!].map(({ value }) => behind(graph, value.ref)),
    );
    expect([w1!, w2!].map(({ uses }) => behind(graph, uses[0]!.outputGradient))).toEqual(
      [taps["y1"]!, taps["y2"]!].map(({ cotangent }) => behind(graph, cotangent.ref)),
    );
  });

  it("finds convolutions, norms, and both uses of a tied embedding", () => {
    const { layers, taps, graph } = found(
      ([table, gain, shift, kernel], tokens) => {
        const x = tap("rows", embedding(table!, tokens!));
        const normed = tap("normed", layerNorm(tap("x", x), gain!, shift!));
        const image = conv2d(tap("image", reshape(normed, [1, 2, 3, 4])), kernel!, { stride: [1, 2], padding: "same" });
        return add(sum(tap("pixels", image)), sum(tap("logits", matmul(normed, table!, { transposeB: true }))));
      },
      [f32(9, 4), f32(4), f32(4), f32(3, 3, 4, 5)],
      [{ dtype: "i32", shape: [6] }],
    );
    const [table, gain, shift, kernel] = layers;
    expect(layers.flatMap(({ unresolved }) => unresolved)).toEqual([]);
    expect(table!.uses.map(({ kind }) => kind)).toEqual(["embedding", "linear"]);
    expect(table!.uses[1]!.params).toMatchObject({ transposeB: true });
    expect(kernel!.uses[0]).toMatchObject({ kind: "convolution", params: { stride: [1, 2] } });
    expect(gain!.uses[0]).toMatchObject({ kind: "norm", bias: shift!.weight });
    expect(shift!.biasOf).toEqual([gain!.uses[0]!.node]);
    const gradients = [...table!.uses, ...gain!.uses, ...kernel!.uses].map(({ outputGradient }) =>
      behind(graph, outputGradient),
    );
    expect(gradients).toEqual(
      ["rows", "logits", "normed", "pixels"].map((name) => behind(graph, taps[name]!.cotangent.ref)),
    );
    expect(behind(graph, kernel!.uses[0]!.input)).toBe(behind(graph, taps["image"]!.value.ref));
    expect(valueKey(gain!.uses[0]!.input)).toBe(valueKey(taps["x"]!.value.ref));
  });

  it("reports uses that it cannot resolve", () => {
    const { layers } = found(
      ([position, part, unseen], x) =>
        sum(add(matmul(add(x!, position!), slice(part!, [0], [3])), sum(stopGradient(matmul(x!, unseen!))))),
      [f32(4, 3), f32(6, 2), f32(3, 2)],
      [f32(4, 3)],
    );
    expect(layers.map(({ uses, unresolved }) => [uses.length, ...unresolved])).toEqual([
      [0, "add reads the leaf, and is not a linear layer, convolution, embedding or norm"],
      [0, "slice reads the leaf, and is not a linear layer, convolution, embedding or norm"],
      [0, "no gradient reaches the result of matmul"],
    ]);
    const twice = trace(
      (w: Tensor, x: Tensor) => {
        const fn = (own: Tensor): Tensor => sum(matmul(x, own));
        return valueAndGrad((own: Tensor) => add(fn(own), sum(valueAndGrad(fn)(own)[1])))(w)[1];
      },
      [f32(3, 2), f32(4, 3)] as never,
    );
    expect(
      layersOf(twice).flatMap(({ uses, unresolved }) => [...uses.map(({ kind }) => kind), ...unresolved]),
    ).toContain("linear");
  });

  it("counts the leading dimensions that index matrices, for all layers that read a weight", () => {
    const stacks = (fn: (params: Tensor[], ...rest: Tensor[]) => Tensor, ...shapes: number[][]): number[] =>
      found(
        fn,
        shapes.map((shape) => f32(...shape)),
        [f32(4, 3), { dtype: "i32", shape: [2] }, f32(2, 4, 3), f32(5, 2, 4, 3), f32(1, 8, 8, 3)],
      ).layers.map(({ stackDims }) => stackDims);
    // Expert weights: one use; two uses of the same kind; with a penalty; stored as [experts, outputs, inputs].
    expect(stacks(([w], x, counts) => sum(groupedMatmul(x!, w!, counts!)), [2, 3, 7])).toEqual([1]);
    expect(
      stacks(
        ([w], x, counts, batch) => add(sum(groupedMatmul(x!, w!, counts!)), sum(matmul(batch!, cast(w!, "f32")))),
        [2, 3, 3],
      ),
    ).toEqual([1]);
    expect(
      stacks(([w], x, counts) => add(sum(groupedMatmul(x!, w!, counts!)), sum(multiply(w!, w!))), [2, 3, 7]),
    ).toEqual([1]);
    expect(stacks(([w], x, counts) => sum(groupedMatmul(x!, transpose(w!, [0, 2, 1]), counts!)), [2, 3, 3])).toEqual([
      1,
    ]);
    // Matrix products whose leading dimensions are separate or merged in the leaf.
    expect(stacks(([w], _x, _counts, _batch, deep) => sum(matmul(deep!, w!)), [5, 2, 3, 7])).toEqual([2]);
    expect(stacks(([w], _x, _counts, batch) => sum(matmul(batch!, reshape(w!, [2, 3, 6]))), [2, 3, 3, 2])).toEqual([1]);
    // Not stacks: a reordered leaf, a leaf that another layer reads as one matrix, convolution kernels and plain
    // weights.
    expect(stacks(([w], _x, _counts, batch) => sum(matmul(batch!, transpose(w!, [1, 0, 2]))), [3, 2, 7])).toEqual([0]);
    expect(stacks(([w], _x, _counts, batch) => sum(matmul(batch!, reshape(w!, [2, 3, 7]))), [3, 2, 7])).toEqual([0]);
    expect(
      stacks(
        ([w], x, counts) => add(sum(groupedMatmul(x!, w!, counts!)), sum(matmul(x!, reshape(w!, [3, 14])))),
        [2, 3, 7],
      ),
    ).toEqual([0]);
    expect(
      stacks(
        ([kernel, w, b], x, _counts, _batch, _deep, image) =>
          add(sum(conv2d(image!, kernel!)), sum(add(matmul(x!, w!), b!))),
        [3, 3, 3, 2],
        [3, 7],
        [7],
      ),
    ).toEqual([0, 0, 0]);
  });
});
