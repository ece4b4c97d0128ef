import { flattenTree, type Tensor, trace } from "@skein/tensor-core";
import { type ConformanceCase, conformanceCases } from "@skein/testing";
import { describe, expect, test } from "vitest";
import { type DeviceFacts, minimalDevice, shadersOf } from "../src/index.ts";

const rich: DeviceFacts = {
  ...minimalDevice,
  adapter: "a device with f16 and subgroups",
  f16: true,
  subgroups: true,
  minSubgroupSize: 32,
  maxSubgroupSize: 32,
};
const software: DeviceFacts = { ...minimalDevice, adapter: "a processor", software: true };

const brackets = (text: string, kinds: string): number => [...text].filter((letter) => kinds.includes(letter)).length;

/**
 * Returns lines of a shader whose indentation does not match their brackets. A statement may continue with two more
 * columns of indentation.
 */
const strayLines = (code: string): string[] => {
  let depth = 0;
  let before = ";";
  return code
    .trimEnd()
    .split("\n")
    .filter((line) => {
      const text = line.trim();
      const statement = text.replace(/\/\/.*/, "");
      const continues = !/[{};,(]$|^\/\/|^@/.test(before);
      const closing = /^[})]*/.exec(text)![0].length;
      const due = 2 * (depth - closing);
      const indent = line.search(/[^ ]|$/);
      depth += brackets(statement, "{(") - brackets(statement, "})");
      before = text;
      return (
        text === "" || /\}(fn|var|struct|const) /.test(text) || (indent !== due && !(continues && indent === due + 2))
      );
    });
};

/** For each operator, the first row with the maximum number of operands. */
const rows: readonly ConformanceCase[] = [...Map.groupBy(conformanceCases, ({ op }) => op).values()].map((same) =>
  same.reduce((most, row) => (row.inputs.length > most.inputs.length ? row : most)),
);

describe("generated shaders are readable", () => {
  test.each(rows.map((row) => [row.op, row] as const))("%s: lines are indented as deep as their brackets", (_, row) => {
    const run = (...inputs: Tensor[]): Tensor[] => flattenTree<Tensor>(row.fn(...inputs)).leaves;
    const { graph } = trace(run, row.inputs as never);
    for (const facts of [minimalDevice, rich, software])
      for (const { code } of shadersOf(graph, facts)) expect(strayLines(code), code).toEqual([]);
  });
});
