import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ContractedGraph } from "./contracted-graph.ts";

/** Whether the graph has a cycle between different vertices after each vertex is replaced by its `owner`. */
const hasCycle = (successors: readonly (readonly number[])[], owner: (vertex: number) => number): boolean => {
  const edges = new Map<number, Set<number>>();
  successors.forEach((list, vertex) => {
    const own = edges.get(owner(vertex)) ?? new Set();
    edges.set(owner(vertex), own);
    for (const next of list) if (owner(next) !== owner(vertex)) own.add(owner(next));
  });
  const state = new Map<number, "open" | "closed">();
  const visit = (vertex: number): boolean => {
    if (state.has(vertex)) return state.get(vertex) === "open";
    state.set(vertex, "open");
    const found = [...(edges.get(vertex) ?? [])].some(visit);
    state.set(vertex, "closed");
    return found;
  };
  return [...edges.keys()].some(visit);
};

describe("ContractedGraph", () => {
  it("merges exactly when no cycle results, and keeps a topological order", () => {
    const size = 12;
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.nat(size - 1), fc.nat(size - 1)), { maxLength: 25 }),
        fc.array(fc.tuple(fc.nat(size - 1), fc.nat(size - 1)), { maxLength: 12 }),
        (edges, merges) => {
          const successors = Array.from({ length: size }, (_, vertex) =>
            edges.filter(([a, b]) => Math.min(a, b) === vertex && a !== b).map(([a, b]) => Math.max(a, b)),
          );
          const graph = new ContractedGraph(successors);
          for (const [a, b] of merges) {
            const [first, last] = [graph.find(a), graph.find(b)];
            if (first === last) continue;
            const wouldCycle = hasCycle(successors, (vertex) =>
              graph.find(vertex) === last ? first : graph.find(vertex),
            );
            expect(graph.merge(first, last) === undefined).toBe(wouldCycle);
          }
          const position = new Map(graph.order.map((vertex, at) => [vertex, at]));
          successors.forEach((list, vertex) => {
            for (const next of list) {
              if (graph.find(vertex) !== graph.find(next))
                expect(position.get(graph.find(vertex))!).toBeLessThan(position.get(graph.find(next))!);
            }
          });
        },
      ),
      { numRuns: 500 },
    );
  });
});
