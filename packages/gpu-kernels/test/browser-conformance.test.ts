import { conformanceCases, inputElements } from "@skein/testing";
import { describeRows } from "./browser-rows.ts";

const rowsOf = Map.groupBy(conformanceCases, ({ op }) => op);

/**
 * Operators whose larger rows use programs with many loops. SwiftShader takes ten seconds to compile each of these
 * programs.
 */
const loopHeavyOps: readonly string[] = ["cholesky", "eigh", "qr", "triangular-solve"];

// SwiftShader takes a quarter of an hour to compile the shaders of the complete table, and Mesa's driver in Node runs
// nearly all of it. Therefore only the largest row of each operator runs here; `browser-conformance.full.test.ts` runs
// all rows.
await describeRows(
  [...rowsOf].map(([op, rows]) =>
    rows.reduce((chosen, row) =>
      inputElements(row) > inputElements(chosen) !== loopHeavyOps.includes(op) ? row : chosen,
    ),
  ),
);
