import { describe, expect, it } from "vitest";
import { allReduce } from "../functions/collective.ts";
import { add, multiply, subtract, tanh } from "../functions/elementwise.ts";
import { scatterAdd } from "../functions/indexing.ts";
import { cumsum } from "../functions/reduce.ts";
import { matmul } from "../functions/linear.ts";
import { concat, reshape, slice, transpose } from "../functions/movement.ts";
import { type Graph, valueKey } from "../graph/graph.ts";
import type { Tensor } from "../graph/tensor.ts";
import { trace } from "../tracing/trace.ts";
import { type MemoryPlan, type MemoryPlanOptions, type Place, planMemory } from "./memory-plan.ts";
import { optimize } from "../passes/optimize.ts";

/** Reshapes a 4×4 tensor to 8×2. */
const tensorOf = (x: Tensor): Tensor => reshape(x, [8, 2]);

const tensor = (...shape: number[]): Tensor => ({ dtype: "f32", shape }) as unknown as Tensor;

interface Planned {
  readonly graph: Graph;
  readonly plan: MemoryPlan;
  /** Returns the location of output 0 of the `nth` node with operator `op`. Default: the first node. */
  readonly of: (op: string, nth?: number) => Place;
}

const planned = (
  fn: (x: Tensor, y: Tensor, z: Tensor, w: Tensor) => Tensor | readonly Tensor[],
  inputs: Tensor[],
  options: MemoryPlanOptions = {},
): Planned => {
  const graph = optimize(trace(fn, inputs as [Tensor, Tensor, Tensor, Tensor], { mesh: { data: 2 } }).graph);
  const plan = planMemory(graph, options);
  return {
    graph,
    plan,
    of: (op, nth = 0) =>
      plan.places.get(valueKey({ node: graph.nodes.filter((node) => node.op === op)[nth]!.id, output: 0 }))!,
  };
};

describe("planMemory", () => {
  it("computes the gradients of a bucket inside it, sends it in place, and reads it back by views", () => {
    const { graph, plan, of } = planned(
      (x, w) => {
        const [a, b] = [matmul(x, w), matmul(w, x)];
        const bucket = allReduce(concat([reshape(a, [16]), reshape(b, [16])], { dim: 0 }), "data");
        return [
          matmul(reshape(slice(bucket, [0], [16]), [4, 4]), x),
          matmul(reshape(slice(bucket, [16], [32]), [4, 4]), x),
        ];
      },
      [tensor(4, 4), tensor(4, 4)],
    );
    expect(of("matmul", 0)).toEqual(of("concat"));
    expect(of("matmul", 1)).toEqual({ ...of("concat"), offset: of("concat").offset + 64 });
    expect(of("collective-start")).toEqual(of("concat"));
    expect(of("slice", 1)).toEqual(of("matmul", 1));
    expect([...plan.placedOperands.values()]).toEqual([[true, true]]);
    expect(plan.workspaceBytes).toBe(128);
    expect(graph.nodes.filter(({ id, op }) => !plan.settled.has(id) && op !== "input").map(({ op }) => op)).toEqual([
      "matmul",
      "matmul",
      "collective-start",
      "matmul",
      "matmul",
    ]);
  });

  it("does not place graph inputs, parts, or one value twice", () => {
    const { plan } = planned(
      (x) => {
        const square = matmul(x, x);
        return tanh(concat([x, slice(square, [0], [1]), matmul(square, x)], { dim: 0 }));
      },
      [tensor(2, 2)],
    );
    expect([...plan.placedOperands.values()]).toEqual([[false, false, true]]);
    const twice = planned(
      (x) => {
        const y = matmul(x, x);
        return matmul(concat([y, y], { dim: 0 }), x);
      },
      [tensor(4, 4)],
    );
    expect([...twice.plan.placedOperands.values()]).toEqual([[true, false]]);
  });

  it("does not confuse a part with its whole if their rounded sizes are equal", () => {
    for (const viewAlignment of [1, 16, 256]) {
      const { plan } = planned(
        (x, z) => {
          const e = cumsum(x);
          return [concat([slice(e, [0], [5]), slice(z, [0], [3])], { dim: 0 }), e];
        },
        [tensor(7), tensor(8)],
        { viewAlignment },
      );
      expect([...plan.placedOperands.values()]).toEqual([[false, false]]);
      const [joined, e] = plan.outputs;
      expect([joined!.region, joined!.index]).not.toEqual([e!.region, e!.index]);
    }
  });

  it("rejects views that are aligned to more than their blocks", () => {
    expect(() => planned((x) => tanh(x), [tensor(4)], { alignment: 64, viewAlignment: 256 })).toThrow(
      /64 bytes.* 256; the alignment of blocks must/,
    );
  });

  it("leaves a concat along an inner dimension to the kernel", () => {
    const { plan } = planned(
      (x, w) => matmul(concat([matmul(x, x), matmul(x, transpose(x))], { dim: 1 }), w),
      [tensor(4, 4), tensor(8, 4)],
    );
    expect(plan.placedOperands.size).toBe(0);
  });

  it("writes each new state over the old one when both are donated", () => {
    const { plan } = planned(
      (g, m, v, p) => {
        const mean = add(multiply(m, 0.9), multiply(g, 0.1));
        const square = add(multiply(v, 0.99), multiply(multiply(g, g), 0.01));
        return [subtract(p, multiply(mean, square)), mean, square];
      },
      [tensor(8), tensor(8), tensor(8), tensor(8)],
      { donate: [1, 2, 3] },
    );
    expect(plan.outputs).toEqual([3, 1, 2].map((index) => ({ region: "input", index, offset: 0 })));
    expect(plan.workspaceBytes).toBe(0);
  });

  it("does not reuse a donated input that is still read, or read by a kernel that cannot work in place", () => {
    const later = planned((p, x) => [matmul(p, x), matmul(x, p)], [tensor(4, 4), tensor(4, 4)], { donate: [0] });
    expect(later.plan.outputs.map(({ region }) => region)).toEqual(["output", "output"]);
    const dead = planned((p, x) => matmul(matmul(p, x), x), [tensor(4, 4), tensor(4, 4)], { donate: [0] });
    expect(dead.plan.outputs).toEqual([{ region: "input", index: 0, offset: 0 }]);
  });

  it("reassigns a donated input if one more output can use it", () => {
    const { plan } = planned(
      (base, rows, indices) => {
        const sum = scatterAdd(base, indices, rows);
        return [matmul(matmul(sum, sum), sum), sum];
      },
      [tensor(4, 4), tensor(4, 4), { dtype: "i32", shape: [4] } as unknown as Tensor],
      { donate: [0, 1] },
    );
    // The product fits into both inputs. The sum, which is computed in place, fits only into the first input.
    expect(plan.outputs.map(({ region, index }) => `${region} ${index}`)).toEqual(["input 1", "input 0"]);
  });

  it("copies outputs that are returned twice, unchanged, or parts of other values; passes a donated input on", () => {
    const { plan } = planned(
      (x, y) => {
        const z = matmul(x, x);
        return [z, z, x, y, slice(z, [1], [2])];
      },
      [tensor(4, 4), tensor(4, 4)],
      { donate: [1] },
    );
    expect(plan.outputs.map(({ region, index }) => `${region} ${index}`)).toEqual([
      "output 0",
      "output 1",
      "output 2",
      "input 1",
      "output 4",
    ]);
    expect(plan.copies).toEqual([
      { from: { region: "output", index: 0, offset: 0 }, to: { region: "output", index: 1, offset: 0 }, bytes: 64 },
      { from: { region: "input", index: 0, offset: 0 }, to: { region: "output", index: 2, offset: 0 }, bytes: 64 },
      { from: { region: "output", index: 0, offset: 16 }, to: { region: "output", index: 4, offset: 0 }, bytes: 16 },
    ]);
  });

  it("keeps operands and results of a collective until it is done", () => {
    const { of } = planned(
      (x, w) => {
        const sent = matmul(x, w);
        const sum = allReduce(sent, "data");
        const meanwhile = matmul(matmul(w, w), w);
        return matmul(add(sum, sent), meanwhile);
      },
      [tensor(4, 4), tensor(4, 4)],
    );
    const places = [of("matmul", 0), of("collective-start"), of("matmul", 1), of("matmul", 2)].map(
      ({ offset }) => offset,
    );
    expect(new Set(places).size).toBe(4);
  });

  it("computes chains in place and adds rows to a base that is not needed later", () => {
    const { plan, of } = planned(
      (x, indices) => matmul(scatterAdd(tanh(matmul(x, x)), indices, slice(x, [0], [2])), x),
      [tensor(4, 4), { dtype: "i32", shape: [2] } as unknown as Tensor],
    );
    expect(of("fused")).toEqual(of("matmul"));
    expect(of("scatter-add")).toEqual(of("matmul"));
    expect(plan.workspaceBytes).toBe(64);
    expect(plan.lowerBoundBytes).toBe(64);
  });

  it("moves a result with its views, also into the middle of a larger block", () => {
    const { of } = planned(
      (x, w) => {
        const [a, b] = [matmul(x, w), matmul(w, x)];
        const packed = matmul(reshape(concat([a, b], { dim: 0 }), [4, 8]), tensorOf(w));
        const update = add(b, x);
        return matmul(packed, matmul(slice(update, [1], [3]), a));
      },
      [tensor(4, 4), tensor(4, 4)],
    );
    expect(of("fused")).toEqual({ region: "workspace", index: 0, offset: of("concat").offset + 64 });
    expect(of("slice")).toEqual({ region: "workspace", index: 0, offset: of("fused").offset + 16 });
  });

  it("asks the backend's rule", () => {
    const chain = (x: Tensor): Tensor => matmul(tanh(matmul(x, x)), x);
    expect(planned(chain, [tensor(4, 4)]).plan.workspaceBytes).toBe(64);
    expect(planned(chain, [tensor(4, 4)], { inPlace: () => false }).plan.workspaceBytes).toBe(128);
  });
});
