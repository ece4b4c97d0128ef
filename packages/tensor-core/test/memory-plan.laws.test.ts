import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { byteLength, type Graph, printGraph } from "../src/index.ts";
import { expandCompositions, fuseElementwise, interpretWorld, optimize, planMemory } from "../src/backend.ts";
import { buildGraph, graphRecipe, inputsFor } from "./random-graph.ts";
import { runPlanned } from "./simulated-memory.ts";

const prepared = {
  optimize,
  fold: (graph: Graph) => optimize(graph, { fuse: { maxTile: 1024 } }),
  fuse: fuseElementwise,
  none: (graph: Graph) => graph,
} as const;

const planned = fc.record({
  recipe: graphRecipe(40),
  donated: fc.array(fc.nat(3), { maxLength: 4 }),
  pass: fc.constantFrom(...(Object.keys(prepared) as (keyof typeof prepared)[])),
  // As on WebGPU: aligned views and a maximum allocation size.
  viewAlignment: fc.constantFrom(1, 16, 32, 256),
  maxSlabBytes: fc.constantFrom(Infinity, 256),
});

describe("planMemory", () => {
  it("lets a worst-case executor compute the interpreter's results, and does not write undonated inputs", () => {
    fc.assert(
      fc.property(planned, ({ recipe, donated, pass, viewAlignment, maxSlabBytes }) => {
        const source = expandCompositions(buildGraph(recipe), () => false);
        const graph = prepared[pass](source);
        const donate = [...new Set(donated.map((index) => index % graph.inputs.length))];
        const inputs = inputsFor(graph);
        const plan = planMemory(graph, { donate, viewAlignment, maxSlabBytes });
        for (const place of plan.places.values()) expect(place.offset % viewAlignment).toBe(0);
        const { outputs, kept } = runPlanned(graph, plan, inputs, donate, viewAlignment);
        expect(outputs, printGraph(graph)).toEqual(interpretWorld(graph, inputs));
        expect(kept).toEqual(inputs.map((own) => own.filter((_, index) => !donate.includes(index))));
      }),
      { numRuns: 2000 },
    );
  });

  it("gives every output separate memory, and uses each donated input at most once", () => {
    fc.assert(
      fc.property(planned, ({ recipe, donated }) => {
        const graph = optimize(buildGraph(recipe));
        const donate = [...new Set(donated.map((index) => index % graph.inputs.length))];
        const plan = planMemory(graph, { donate });
        const regions = plan.outputs.map(({ region, index }) => `${region} ${index}`);
        expect(new Set(regions).size).toBe(regions.length);
        plan.outputs.forEach((place, index) => {
          expect(place.offset).toBe(0);
          if (place.region === "output") expect(place.index).toBe(index);
          else expect([place.region, donate.includes(place.index)]).toEqual(["input", true]);
        });
      }),
    );
  });

  it("needs at least the peak of live bytes and at most the sum of all values", () => {
    fc.assert(
      fc.property(graphRecipe(40), (recipe) => {
        const graph = optimize(buildGraph(recipe));
        const plan = planMemory(graph);
        const apart = graph.nodes
          .flatMap((node) => node.specs.map((spec) => Math.ceil(byteLength(spec) / 64) * 64))
          .reduce((total, bytes) => total + bytes, 0);
        expect(plan.workspaceBytes).toBeGreaterThanOrEqual(plan.lowerBoundBytes);
        expect(plan.workspaceBytes).toBeLessThanOrEqual(apart);
      }),
    );
  });
});
