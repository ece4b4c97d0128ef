import { checkGradientRule, composedOperatorCases } from "@skein/testing";
import { interpretWorld, operators } from "@skein/tensor-core/backend";
import { type Tensor, trace } from "@skein/tensor-core";
import { describe, expect, test } from "vitest";
import { toReference } from "../src/run-on-ranks.ts";

describe("an elementwise operator with a composition, on the reference", () => {
  test("is computed by its scalar function, in f64", () => {
    for (const row of composedOperatorCases.filter(({ gradient }) => gradient === undefined)) {
      const [x] = row.inputs;
      const { graph } = trace((own: Tensor) => row.fn(own) as Tensor, [x!] as never);
      expect(graph.nodes.map(({ op }) => op)).toEqual(["input", "sinh"]);
      const [results] = interpretWorld(graph, [[toReference(x!)]]);
      expect([...results![0]!.data]).toEqual(Array.from(x!.toNumbers(), Math.sinh));
    }
    expect(Object.keys(operators)).not.toContain("sinh");
  });

  test.each(
    composedOperatorCases.filter(({ gradient }) => gradient !== undefined).map((row) => [row.name, row] as const),
  )("%s", (_, row) => checkGradientRule(row));
});
