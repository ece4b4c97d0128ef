import { describe, expect, it } from "vitest";
import { relu } from "../../functions/activation.ts";
import { allReduce } from "../../functions/collective.ts";
import { packBits } from "../../functions/bits.ts";
import {
  absolute,
  add,
  bitcast,
  bitwiseAnd,
  divide,
  less,
  multiply,
  negate,
  subtract,
  tanh,
} from "../../functions/elementwise.ts";
import { matmul } from "../../functions/linear.ts";
import { broadcastTo, reshape, transpose } from "../../functions/movement.ts";
import { reduceMax, reduceMin, sum } from "../../functions/reduce.ts";
import { type Graph, type Node, specOf } from "../../graph/graph.ts";
import type { Tensor } from "../../graph/tensor.ts";
import { trace } from "../../tracing/trace.ts";
import { validateGraph } from "../../inspection/validate.ts";
import { scope } from "../../graph/emit.ts";
import { valueAndGrad } from "../../autodiff/vjp.ts";
import { foldTile, type FusedFold, type FusedParams } from "../../ops/fused.ts";
import { adamw } from "../../optim/optimizers.ts";
import { applyUpdates } from "../../optim/transformation.ts";
import { unflattenTree } from "../../tree.ts";
import { fuseElementwise, type FusionOptions } from "./fuse-elementwise.ts";
import { planMemory } from "../../memory/memory-plan.ts";
import { optimize } from "../optimize.ts";

const tensor = (...shape: number[]): Tensor => ({ dtype: "f32", shape }) as unknown as Tensor;
const fusedOf = (graph: Graph): Node[] => graph.nodes.filter(({ op }) => op === "fused");
const paramsOf = (node: Node): FusedParams => node.params as unknown as FusedParams;
const opsOf = (node: Node): string[] => paramsOf(node).instructions.map(({ op }) => op);

const fuse = (
  fn: (...inputs: Tensor[]) => Tensor | readonly Tensor[],
  inputs: Tensor[],
  mesh = {},
  options: FusionOptions = {},
): Graph => {
  const graph = fuseElementwise(trace(fn, inputs, { mesh }).graph, options);
  validateGraph(graph);
  return graph;
};

describe("fuseElementwise", () => {
  it("reads a broadcast bias in place and folds constants", () => {
    const [node, ...rest] = fusedOf(fuse((x, bias) => relu(multiply(add(x, bias), 2)), [tensor(2, 3, 4), tensor(4)]));
    expect(rest).toEqual([]);
    expect(opsOf(node!)).toEqual(["add", "constant", "multiply", "relu"]);
    expect(paramsOf(node!)).toMatchObject({
      shape: [6, 4],
      views: [{ strides: [4, 1] }, { strides: [0, 1] }],
      results: [5],
    });
    expect(node!.specs).toEqual([{ dtype: "f32", shape: [2, 3, 4] }]);
  });

  it("returns every value that other nodes need, and lists each input once", () => {
    const [node] = fusedOf(
      fuse(
        (x, y) => {
          const product = multiply(x, y);
          return [product, matmul(add(product, y), y)];
        },
        [tensor(4, 4), tensor(4, 4)],
      ),
    );
    expect(node!.inputs).toHaveLength(2);
    expect(node!.specs).toHaveLength(2);
  });

  it("fuses a bitcast with its neighbors, and keeps a single bitcast as a view", () => {
    const joined = fuse((x) => bitcast(bitwiseAnd(bitcast(multiply(x, 2), "u32"), 0xffff0000), "f32"), [tensor(3, 4)]);
    expect(joined.nodes.map(({ op }) => op)).toEqual(["input", "fused"]);
    expect(opsOf(joined.nodes[1]!)).toEqual(["constant", "multiply", "bitcast", "constant", "bitwise-and", "bitcast"]);

    const alone = fuse((x) => bitcast(reshape(matmul(x, x), [16]), "u32"), [tensor(4, 4)]);
    expect(alone.nodes.map(({ op }) => op)).toEqual(["input", "matmul", "bitcast", "reshape"]);
    const plan = planMemory(alone);
    expect([...plan.settled]).toEqual([2, 3]);
    expect(plan.places.get("3:0")).toEqual(plan.places.get("1:0"));

    const stretched = fuse((x) => bitcast(broadcastTo(x, [4, 3]), "u32"), [tensor(3)]);
    expect(fusedOf(stretched)).toHaveLength(1);
  });

  it("never fuses around another operator", () => {
    const graph = fuse(
      (x) => {
        const y = tanh(x);
        return add(y, matmul(y, y));
      },
      [tensor(4, 4)],
    );
    expect(graph.nodes.map(({ op }) => op)).toEqual(["input", "fused", "matmul", "fused"]);
  });

  it("follows reshapes, and iterates in steps that fit all shapes", () => {
    const [node, ...rest] = fusedOf(
      fuse(
        (x, row) => multiply(reshape(tanh(x), [3, 4, 2]), broadcastTo(row, [3, 4, 2])),
        [tensor(12, 2), tensor(1, 4, 1)],
      ),
    );
    expect(rest).toEqual([]);
    expect(paramsOf(node!)).toMatchObject({
      shape: [3, 4, 2],
      views: [{ strides: [8, 2, 1] }, { strides: [0, 1, 0] }],
    });
  });

  it("does not fuse shapes without a common iteration", () => {
    const graph = fuse((x, row) => add(reshape(broadcastTo(row, [4, 6]), [6, 4]), x), [tensor(6, 4), tensor(6)]);
    expect(graph.nodes.map(({ op }) => op)).toEqual(["input", "input", "broadcast-to", "fused"]);
  });

  it("does not fuse the operand of a transpose", () => {
    expect(fusedOf(fuse((x) => add(transpose(tanh(x)), 1), [tensor(3, 4)]))).toHaveLength(2);
  });

  it("computes values that only the backward pass needs in the backward pass", () => {
    const loss = (w: Tensor, x: Tensor): Tensor => {
      const y = matmul(relu(matmul(x, w)), w);
      return sum(multiply(y, y));
    };
    const graph = optimize(
      trace((w: Tensor, x: Tensor) => valueAndGrad(loss)(w, x), [tensor(3, 3), tensor(2, 3)]).graph,
    );
    const programs = fusedOf(graph).map(opsOf);
    expect(programs[0]).toEqual(["relu"]);
    expect(programs.find((ops) => ops.includes("where"))).toContain("less-equal");
  });

  it("updates a parameter by AdamW in one node of a known size", () => {
    const optimizer = adamw({ learningRate: 0.1, weightDecay: 0.01 });
    const params = { p: tensor(5, 5) };
    const initial = trace((own: typeof params) => optimizer.init(own), [params]);
    const state = unflattenTree<ReturnType<typeof optimizer.init>>(
      initial.outputs,
      initial.graph.outputs.map((ref) => specOf(initial.graph, ref)),
    );
    const step = (own: typeof params, gradients: typeof params, before: typeof state): unknown => {
      const [updates, after] = optimizer.update(gradients, before, { params: own });
      return [applyUpdates(own, updates), after];
    };
    const { graph } = trace(step, [params, params, state]);
    const large = fusedOf(optimize(graph)).filter((node) => node.specs.some(({ shape }) => shape.length === 2));
    expect(large).toHaveLength(1);
    expect(large[0]!.specs).toHaveLength(3);
  });

  it("does not make an early result wait for a collective", () => {
    const graph = fuse(
      (x) => {
        const own = tanh(x);
        return [allReduce(negate(own), "data"), subtract(own, allReduce(x, "data"))];
      },
      [tensor(8)],
      { data: 2 },
    );
    const early = fusedOf(graph)[0]!;
    expect(opsOf(early)).toEqual(["tanh", "negate"]);
    expect(early.inputs).toEqual([{ node: 0, output: 0 }]);
  });

  it("respects its limits", () => {
    const chain = (x: Tensor): Tensor => Array.from({ length: 40 }).reduce<Tensor>((value) => tanh(value), x);
    for (const node of fusedOf(fuseElementwise(trace(chain, [tensor(4)]).graph, { maxRegisters: 10 }))) {
      expect(paramsOf(node).instructions.length + node.inputs.length).toBeLessThanOrEqual(10);
    }
    const wide = (...inputs: Tensor[]): Tensor => inputs.reduce((total, input) => add(total, input));
    for (const node of fusedOf(
      fuseElementwise(
        trace(
          wide,
          Array.from({ length: 12 }, () => tensor(4)),
        ).graph,
        { maxOperands: 6 },
      ),
    )) {
      expect(node.inputs.length + node.specs.length).toBeLessThanOrEqual(6);
    }
  });

  it("names the scope that its members share", () => {
    const graph = fuse(
      (x) => scope("model", () => scope("b", () => tanh(scope("c", () => negate(scope("a", () => tanh(x))))))),
      [tensor(4)],
    );
    expect(fusedOf(graph)[0]!.scope).toBe("model/b");
  });

  it("accepts scalars and empty tensors", () => {
    const graph = fuse((x, y) => [tanh(x), tanh(y)], [tensor(), tensor(0, 3)]);
    expect(fusedOf(graph).map((node) => paramsOf(node).shape)).toEqual([[1], [0]]);
  });
});

describe("folds", () => {
  const fold = (fn: (...inputs: Tensor[]) => Tensor | readonly Tensor[], ...inputs: Tensor[]): Graph =>
    fuse(fn, inputs, {}, { maxTile: 1024 });
  const stepsOf = (graph: Graph): string[] => graph.nodes.filter(({ op }) => op !== "input").map(({ op }) => op);
  const along = { dims: -1, keepDims: true };

  it("reduce results of the program without writing them to memory", () => {
    const graph = fold((x) => sum(absolute(x)), tensor(4, 30));
    expect(stepsOf(graph)).toEqual(["fused"]);
    expect(paramsOf(graph.nodes[1]!).folds).toEqual([{ op: "sum", size: 120 }]);
    expect(planMemory(graph).workspaceBytes).toBe(0);
    const rows = fold((x) => [sum(absolute(x), along), packBits(less(x, 0))], tensor(4, 32));
    expect(stepsOf(rows)).toEqual(["fused", "reshape"]);
    expect(paramsOf(rows.nodes[1]!)).toMatchObject({
      folds: [
        { op: "sum", size: 32 },
        { op: "pack-bits", size: 32 },
      ],
    });
    expect(rows.nodes[1]!.specs.map(({ shape }) => shape)).toEqual([[4], [4, 1]]);
  });

  it("read a value once, computed or loaded", () => {
    const ends = fold((x) => [reduceMax(x), reduceMin(x)], tensor(70));
    expect(stepsOf(ends)).toEqual(["fused"]);
    expect(paramsOf(ends.nodes[1]!)).toMatchObject({ instructions: [], results: [0, 0] });
    const kept = fold((x) => {
      const y = tanh(x);
      return [y, sum(y)];
    }, tensor(70));
    expect(paramsOf(kept.nodes[1]!)).toMatchObject({ results: [1, 1], folds: [null, { op: "sum", size: 70 }] });
  });

  it("are not read within their program", () => {
    const graph = fold(
      (x) => {
        const y = tanh(x);
        return divide(y, sum(y, along));
      },
      tensor(4, 30),
    );
    expect(fusedOf(graph).map(opsOf)).toEqual([["tanh"], ["divide"]]);
  });

  it("are not fused if they are not trailing, or share no tile", () => {
    expect(stepsOf(fold((x) => sum(x), tensor(70)))).toEqual(["sum"]);
    expect(stepsOf(fold((x) => sum(reshape(x, [10, 7]), along), tensor(70)))).toEqual(["reshape", "sum", "reshape"]);
    expect(stepsOf(fold((x) => sum(tanh(x), { dims: 0 }), tensor(10, 7)))).toEqual(["fused", "sum"]);
    expect(stepsOf(fold((x) => sum(tanh(x)), tensor(1)))).toContain("sum");
    expect(stepsOf(fold((x) => sum(tanh(x)), tensor(0)))).toEqual(["fused", "sum"]);
    // Rows of 510 bits end inside a word of the flattened tensor.
    expect(fusedOf(fold((x) => [sum(x, along), packBits(reshape(less(x, 0), [5100]))], tensor(10, 510)))).toHaveLength(
      1,
    );
    const twice = fold(
      (x) => {
        const y = tanh(x);
        return [sum(y, along), sum(y)];
      },
      tensor(10, 2000),
    );
    expect(stepsOf(twice).toSorted()).toEqual(["fused", "reshape", "sum"]);
  });

  it("are not fused unless requested", () => {
    expect(fuse((x) => sum(absolute(x)), [tensor(40)]).nodes.map(({ op }) => op)).toEqual(["input", "fused", "sum"]);
  });
});

describe("foldTile", () => {
  const sums = (...sizes: number[]): FusedFold[] => sizes.map((size) => ({ op: "sum", size }));

  it("is a multiple of whole rows, or of whole blocks of one longer row", () => {
    expect(foldTile([], 1024)).toBe(1024);
    expect(foldTile(sums(7), 1024)).toBe(1022);
    expect(foldTile(sums(256, 512), 1024)).toBe(1024);
    expect(foldTile(sums(5000), 1024)).toBe(1024);
    expect(foldTile(sums(768, 6144), 1024)).toBeUndefined();
    expect(foldTile([...sums(96), { op: "pack-bits", size: 9600 }], 1024)).toBe(960);
    expect(foldTile([...sums(500), { op: "pack-bits", size: 5000 }], 1024)).toBeUndefined();
    expect(foldTile(sums(2000, 4000), 1024)).toBeUndefined();
  });
});
