import { describe, expect, it } from "vitest";
import { allReduce, sendReceive } from "../functions/collective.ts";
import { add, full, multiply } from "../functions/elementwise.ts";
import { randomBits } from "../functions/random.ts";
import type { Graph } from "../graph/graph.ts";
import type { Tensor } from "../graph/tensor.ts";
import { trace } from "../tracing/trace.ts";
import { eliminateCommonSubexpressions } from "./common-subexpressions.ts";
import { eliminateDeadCode } from "./dead-code.ts";

const vector = { dtype: "f32", shape: [4] } as unknown as Tensor;
const key = { dtype: "u32", shape: [2] } as unknown as Tensor;
const opsOf = (graph: Graph): string[] => graph.nodes.map(({ op }) => op).filter((op) => op !== "input");

describe("eliminateDeadCode", () => {
  it("keeps all inputs and drops unused nodes, including collectives", () => {
    const { graph } = trace(
      (x: Tensor, unused: Tensor) => {
        allReduce(multiply(x, unused), "data");
        return add(x, x);
      },
      [vector, vector],
      { mesh: { data: 2 } },
    );
    const clean = eliminateDeadCode(graph);
    expect(clean.inputs).toEqual([0, 1]);
    expect(opsOf(clean)).toEqual(["add"]);
  });

  it("keeps a send whose result only the peer uses, and its operand", () => {
    const { graph } = trace(
      (x: Tensor) => {
        sendReceive(multiply(x, x), "data", [[0, 1]]);
        return x;
      },
      [vector],
      { mesh: { data: 2 } },
    );
    expect(opsOf(eliminateDeadCode(graph))).toEqual(["multiply", "send-receive"]);
  });
});

describe("eliminateCommonSubexpressions", () => {
  it("merges equal nodes, also with swapped operands, and chains of equal nodes", () => {
    const { graph } = trace(
      (x: Tensor, y: Tensor) => [multiply(add(x, y), y), multiply(add(y, x), y)],
      [vector, vector],
    );
    const merged = eliminateCommonSubexpressions(graph);
    expect(opsOf(merged)).toEqual(["add", "multiply"]);
    expect(merged.outputs[0]).toEqual(merged.outputs[1]);
  });

  it("distinguishes constants that are equal in JSON, and different dtypes", () => {
    const { graph } = trace(
      () => [
        full([2], 0),
        full([2], -0),
        full([2], Infinity),
        full([2], -Infinity),
        full([2], NaN),
        full([2], 0, "i32"),
        full([2], 0),
      ],
      [],
    );
    expect(opsOf(eliminateCommonSubexpressions(graph))).toHaveLength(6);
  });

  it("merges random bits of one key, and never collectives", () => {
    const { graph } = trace(
      (own: Tensor, x: Tensor) => [
        randomBits(own, [3]),
        randomBits(own, [3]),
        allReduce(x, "data"),
        allReduce(x, "data"),
      ],
      [key, vector],
      { mesh: { data: 2 } },
    );
    expect(opsOf(eliminateCommonSubexpressions(graph))).toEqual(["random-bits", "all-reduce", "all-reduce"]);
  });
});
