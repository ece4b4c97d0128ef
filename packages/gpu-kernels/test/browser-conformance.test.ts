import { conformanceCases, inputElements } from "@skein/testing";
import { describeRows } from "./browser-rows.ts";

const rowsOf = Map.groupBy(conformanceCases, ({ op }) => op);

/** Their larger rows take programs of many loops, on each of which SwiftShader compiles for ten seconds. */
const ofManyLoops: readonly string[] = ["cholesky", "eigh", "qr", "triangular-solve"];

// SwiftShader compiles for a quarter of an hour what the whole table needs, and Mesa's driver in Node runs nearly all
// of it. So, of each operator, its largest row here; all of them in `browser-conformance.full.test.ts`.
await describeRows(
  [...rowsOf].map(([op, rows]) =>
    rows.reduce((chosen, row) =>
      inputElements(row) > inputElements(chosen) !== ofManyLoops.includes(op) ? row : chosen,
    ),
  ),
);
