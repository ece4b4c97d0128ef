import { describe, expect, it } from "vitest";
import { allReduce, axisIndex, sendReceive } from "../functions/collective.ts";
import { add, cast, multiply, tanh } from "../functions/elementwise.ts";
import { matmul } from "../functions/linear.ts";
import { scope } from "../graph/emit.ts";
import type { Graph } from "../graph/graph.ts";
import type { Tensor } from "../graph/tensor.ts";
import { trace } from "../tracing/trace.ts";
import { validateGraph } from "../inspection/validate.ts";
import { scheduleCollectives } from "./schedule-collectives.ts";

const matrix = { dtype: "f32", shape: [4, 4] } as unknown as Tensor;

const scheduled = (fn: (...inputs: Tensor[]) => Tensor | readonly Tensor[], inputs = 2): Graph => {
  const graph = scheduleCollectives(
    trace(
      fn,
      Array.from({ length: inputs }, () => matrix),
      { mesh: { data: 2 } },
    ).graph,
  );
  validateGraph(graph);
  return graph;
};

/** Returns the node names `op scope` in order, without inputs. */
const order = (graph: Graph): string[] =>
  graph.nodes.filter(({ op }) => op !== "input").map(({ op, scope: path }) => `${op} ${path}`.trim());

describe("scheduleCollectives", () => {
  it("starts a bucket as soon as its gradient is ready, although it was traced after all gradients, and waits late", () => {
    const graph = scheduled((x, w) => {
      const late = scope("layer2", () => matmul(x, w));
      const early = scope("layer1", () => matmul(late, w));
      // The encodings of both buckets are traced after both gradients.
      const [second, first] = [
        scope("layer2", () => allReduce(tanh(late), "data")),
        scope("layer1", () => allReduce(tanh(early), "data")),
      ];
      return [scope("layer1", () => multiply(first, w)), scope("layer2", () => multiply(second, w))];
    });
    expect(order(graph)).toEqual([
      "matmul layer2",
      "tanh layer2",
      "collective-start layer2",
      "matmul layer1",
      "tanh layer1",
      "collective-start layer1",
      // The result of the bucket that is sent first is read first.
      "collective-done layer2",
      "multiply layer2",
      "collective-done layer1",
      "multiply layer1",
    ]);
  });

  it("runs independent nodes before it waits", () => {
    const graph = scheduled((x, w) => [add(allReduce(x, "data"), 1), matmul(x, w)]);
    expect(order(graph)).toEqual(["collective-start", "constant", "matmul", "collective-done", "add"]);
  });

  it("keeps the position of nodes that no collective needs, so that they do not accumulate at the end", () => {
    const graph = scheduled((x, w) => {
      const first = scope("metric", () => tanh(matmul(x, w)));
      const second = matmul(matmul(x, w), w);
      return [first, allReduce(second, "data")];
    });
    expect(order(graph).indexOf("tanh metric")).toBeLessThan(order(graph).indexOf("collective-start"));
  });

  it("starts all first rounds before it waits for one", () => {
    const graph = scheduled((x, w) => {
      const round = (value: Tensor): Tensor => allReduce(matmul(allReduce(value, "data"), w), "data");
      return [round(matmul(x, w)), round([1, 2, 3, 4].reduce((value) => matmul(value, w), x))];
    });
    const ops = order(graph);
    expect(ops.slice(0, ops.indexOf("collective-done")).filter((op) => op === "collective-start")).toHaveLength(2);
  });

  it("waits for unused collectives, does not split axis-index, and keeps the parameters", () => {
    const graph = scheduled((x) => {
      sendReceive(x, "data", [[0, 1]]);
      return [multiply(x, cast(axisIndex("data"), "f32"))];
    }, 1);
    expect(order(graph)).toContain("axis-index");
    expect(graph.nodes.find(({ op }) => op === "collective-start")!.params).toEqual({
      axis: "data",
      axisSize: 2,
      collective: "send-receive",
      pairs: [[0, 1]],
      position: 0,
    });
    expect(order(graph)).toContain("collective-done");
  });

  it("returns a graph without collectives unchanged", () => {
    const { graph } = trace((x: Tensor) => tanh(x), [matrix]);
    expect(scheduleCollectives(graph)).toBe(graph);
  });
});
