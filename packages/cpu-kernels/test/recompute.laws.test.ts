import {
  type Backend,
  type Graph,
  jit,
  mixedPrecision,
  type NdArray,
  printGraph,
  randomKey,
  type Tensor,
  trace,
  valueAndGrad,
} from "@skein/tensor-core";
import {
  eliminateDeadCode,
  interpretWorld,
  optimize,
  type Recomputation,
  recomputeRegions,
  recomputeWithin,
  type ReferenceArray,
  validateGraph,
} from "@skein/tensor-core/backend";
import { normalArray } from "@skein/testing";
import fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import { createCpuBackend } from "../src/cpu-backend.ts";
import { lossOf, type StepParams, type StepRecipe, stepRecipe, stepSize } from "./random-step.ts";

const square = [stepSize, stepSize];
const params = {
  weights: [normalArray(square, 1), normalArray(square, 2), normalArray(square, 3)],
  gain: normalArray([stepSize], 4),
  shift: normalArray([stepSize], 5),
};
const args = [params, normalArray(square, 6), randomKey(7)] as const;
const leaves: readonly NdArray[] = [...params.weights, params.gain, params.shift, args[1], args[2]];

const step =
  (recipe: StepRecipe, checkpointed: boolean) =>
  (own: StepParams, x: Tensor, key: Tensor): unknown =>
    valueAndGrad(lossOf(recipe, checkpointed))(own, x, key);

const traced = (recipe: StepRecipe, checkpointed: boolean, ranks: number): Graph =>
  trace(step(recipe, checkpointed) as never, args as never, { mesh: { data: ranks } }).graph;

const world: readonly (readonly ReferenceArray[])[] = [1, 1.5].map((scale) =>
  leaves.map((array) => ({
    spec: array,
    data: Float64Array.from(array.toNumbers(), (value) => (array.dtype === "f32" ? value * scale : value)),
  })),
);

const inBackward = (graph: Graph): Graph["nodes"] => graph.nodes.filter(({ phase }) => phase === "backward");

describe("recomputation of checkpoints", () => {
  let backend: Backend;

  beforeAll(async () => {
    // The relaxed build rounds a product and a sum only once if they are in one kernel, so its results depend on
    // fusion.
    backend = await createCpuBackend({ build: "simd" });
  });

  const run = async (
    recipe: StepRecipe,
    checkpointed: boolean,
    half: boolean,
    maxWorkspaceBytes?: number,
  ): Promise<number[][]> => {
    const compiled = jit(step(recipe, checkpointed) as never, backend, {
      passes: half ? [(graph) => mixedPrecision(graph)] : [],
      ...(maxWorkspaceBytes !== undefined && { maxWorkspaceBytes }),
    });
    const [loss, grads] = (await compiled(...(args as never as []))) as unknown as [
      never,
      { weights: never[]; gain: never; shift: never },
    ];
    const results: number[][] = [];
    for (const array of [loss, ...grads.weights, grads.gain, grads.shift]) {
      results.push([...(await backend.download(array)).toNumbers()]);
      backend.free(array);
    }
    compiled.release();
    return results;
  };

  it("keeps every bit of loss and gradients on the reference, and repeats no collective", () => {
    fc.assert(
      fc.property(stepRecipe, (recipe) => {
        const before = traced(recipe, true, 2);
        const after = recomputeRegions(before);
        validateGraph(after);
        const numbers = (graph: Graph): number[][][] =>
          interpretWorld(graph, world).map((rank) => rank.map(({ data }) => [...data]));
        expect(numbers(after), printGraph(after)).toEqual(numbers(traced(recipe, false, 2)));
        const collectives = (graph: Graph): number =>
          eliminateDeadCode(graph).nodes.filter(({ op }) => op === "all-reduce").length;
        expect(collectives(after)).toBe(collectives(before));
      }),
      { numRuns: 200 },
    );
  });

  it("keeps every bit on the CPU backend, also for f16 products", async () => {
    await fc.assert(
      fc.asyncProperty(stepRecipe, fc.boolean(), async (recipe, half) => {
        expect(await run(recipe, true, half)).toEqual(await run(recipe, false, half));
      }),
      { numRuns: 100 },
    );
  });

  it("keeps every bit if the recomputation was chosen for a memory bound by the backend's plan, and stays within the bound", async () => {
    let kept = 0;
    await fc.assert(
      fc.asyncProperty(stepRecipe, fc.double({ min: 0.6, max: 1, noNaN: true }), async (recipe, share) => {
        const graph = traced(recipe, false, 1);
        const maxBytes = Math.max(1, Math.floor(share * backend.workspaceBytes!(graph)));
        let found: Recomputation;
        try {
          found = recomputeWithin(graph, { maxBytes, workspaceBytes: (one) => backend.workspaceBytes!(one) });
        } catch (error) {
          expect((error as Error).message).toContain("the least that computing values again was found to take");
          return;
        }
        kept += found.repeatedFlops > 0 ? 1 : 0;
        expect(backend.workspaceBytes!(found.graph)).toBeLessThanOrEqual(maxBytes);
        expect(await run(recipe, false, false, maxBytes)).toEqual(await run(recipe, false, false));
      }),
      { numRuns: 40, seed: 11 },
    );
    expect(kept).toBeGreaterThan(5);
  });
  it("keeps only the results of a region alive between the passes", () => {
    fc.assert(
      fc.property(stepRecipe, (recipe) => {
        const graph = optimize(traced(recipe, true, 1), { fuse: false, schedule: false });
        const inside = graph.nodes.filter(
          ({ region, phase, op }) => region !== "" && phase === "forward" && op !== "all-reduce",
        );
        const left = new Set(graph.outputs.map(({ node }) => node));
        for (const node of graph.nodes)
          if (node.phase === "forward")
            for (const ref of node.inputs)
              if (!node.region.startsWith(graph.nodes[ref.node]!.region)) left.add(ref.node);
        const read = new Set(inBackward(graph).flatMap(({ inputs }) => inputs.map((ref) => ref.node)));
        const given = (id: number): boolean => graph.nodes[id]!.inputs.length === 0;
        const outermost = inside.filter(({ region }) => !region.includes("/"));
        expect(
          outermost.filter(({ id }) => read.has(id) && !left.has(id) && !given(id)).map(({ op }) => op),
          printGraph(graph),
        ).toEqual([]);
      }),
      { numRuns: 200 },
    );
  });
});
