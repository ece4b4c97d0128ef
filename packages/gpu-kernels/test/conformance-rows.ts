import { checkGradientValues, checkValues, type ConformanceCase, conformanceCases, inputElements } from "@skein/testing";
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

export interface ConformanceChecks {
  readonly values: (row: ConformanceCase) => boolean;
  /** Asked of rows that have a gradient. */
  readonly gradient: (row: ConformanceCase) => boolean;
}

/** Check rows of the conformance table on this machine's adapter; skipped where there is none. */
export const describeConformance = (rows: readonly ConformanceCase[], { values, gradient }: ConformanceChecks): void => {
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
