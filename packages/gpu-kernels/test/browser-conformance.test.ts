import { conformanceCases, inputElements } from "@skein/testing";
import { describeRows } from "./browser-rows.ts";

const rowsOf = Map.groupBy(conformanceCases, ({ op }) => op);

/** Their larger rows use programs with many loops, each of which takes SwiftShader ten seconds to compile. */
const loopHeavyOps: readonly string[] = ["cholesky", "eigh", "qr", "triangular-solve"];

// SwiftShader takes a quarter of an hour to compile the shaders of the complete table, and Mesa's driver in Node runs
// nearly all of it. So only the largest row of each operator runs here; `browser-conformance.full.test.ts` runs all
// rows.
await describeRows(
  [...rowsOf].map(([op, rows]) =>
    rows.reduce((chosen, row) =>
      inputElements(row) > inputElements(chosen) !== loopHeavyOps.includes(op) ? row : chosen,
    ),
  ),
);
