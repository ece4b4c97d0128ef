import { conformanceCases, inputElements } from "@skein/testing";
import { describeRows } from "./browser-rows.ts";

const rowsOf = Map.groupBy(conformanceCases, ({ op }) => op);

// SwiftShader compiles for a quarter of an hour what the whole table needs, and Mesa's driver in Node runs nearly all
// of it. So, of each operator, its largest row here; all of them in `browser-conformance.full.test.ts`.
await describeRows(
  [...rowsOf.values()].map((rows) =>
    rows.reduce((most, row) => (inputElements(row) > inputElements(most) ? row : most)),
  ),
);
