import {
  checkGradientValues,
  checkValues,
  type ConformanceCase,
  conformanceCases,
  inputElements,
} from "@skein/testing";
import { afterAll, beforeAll, describe, test } from "vitest";
import type { WebGpuBackend } from "../src/index.ts";
import { hasAdapter, openBackend } from "./gpu.ts";

// Larger ones find what wide rows do, which their values show as well.
const mostElements = 4096;

/** Of each operator with a derivative, the largest row of a moderate size that has its gradient checked. */
export const chosenGradients: ReadonlySet<ConformanceCase> = new Set(
  [
    ...Map.groupBy(
      conformanceCases.filter((row) => row.gradient !== undefined && inputElements(row) <= mostElements),
      ({ op }) => op,
    ).values(),
  ].map((rows) => rows.reduce((most, row) => (inputElements(row) > inputElements(most) ? row : most))),
);

/** Operators that one kernel computes, with another word of WGSL in one place. */
const families: readonly (readonly string[])[] = [
  ["add", "equal", "bitwise-and", "subtract", "not-equal", "bitwise-or", "multiply", "less", "bitwise-xor"],
  [
    "divide",
    "less-equal",
    "logical-and",
    "maximum",
    "greater",
    "logical-or",
    "minimum",
    "greater-equal",
    "logical-xor",
  ],
  ["sum", "reduce-max", "reduce-min"],
];

/** Rows that differ in shapes and storage types alone, which a family has under the same names. */
const isLayout = ({ name }: ConformanceCase): boolean =>
  /^(\[|all|first|last|middle|both|every|of nothing).*, \w+$/.test(name);

/** Of each layout of a family the row of one operator; they go round, so that each operator has its turn. */
const layoutsInTurn = families.flatMap((family) => {
  const rows = Map.groupBy(
    conformanceCases.filter((row) => family.includes(row.op) && isLayout(row)),
    ({ name }) => name,
  );
  return [...rows.values()].map((same, turn) => same[turn % same.length]!);
});

/**
 * Rows whose values are checked by default: all but layouts that another operator of the family is checked in. Each
 * takes a pipeline of its own, and time to compile it.
 */
export const chosenRows: ReadonlySet<ConformanceCase> = new Set([
  ...conformanceCases.filter((row) => !families.flat().includes(row.op) || !isLayout(row)),
  ...layoutsInTurn,
]);

export interface ConformanceChecks {
  readonly values: (row: ConformanceCase) => boolean;
  /** Asked of rows that have a gradient. */
  readonly gradient: (row: ConformanceCase) => boolean;
}

/** Check rows of the conformance table on this machine's adapter; skipped where there is none. */
export const describeConformance = (
  rows: readonly ConformanceCase[],
  { values, gradient }: ConformanceChecks,
): void => {
  describe.skipIf(!hasAdapter)("conformance on WebGPU", () => {
    let backend: WebGpuBackend;
    beforeAll(async () => {
      backend = await openBackend();
    });
    afterAll(() => backend.close());

    test.each(rows.map((row) => [`${row.op}: ${row.name}`, row] as const))("%s", async (_, row) => {
      if (values(row)) await checkValues(row, backend);
      if (row.gradient !== undefined && gradient(row)) await checkGradientValues(row, backend);
    });
  });
};
