import { conformanceCases, inputElements } from "@skein/testing";
import { describeRows } from "./browser-rows.ts";

const rowsOf = Map.groupBy(conformanceCases, ({ op }) => op);

// SwiftShader compiles for a quarter of an hour what the whole table needs, and Mesa's driver in Node runs the whole table. So, of each operator, its
// first row and its largest here; all of them in `browser-conformance.full.test.ts`.
await describeRows(
  [...rowsOf.values()].flatMap((rows) => {
    const largest = rows.reduce((most, row) => (inputElements(row) > inputElements(most) ? row : most));
    return [...new Set([rows[0]!, largest])];
  }),
);
