import { conformanceCases } from "@skein/testing";
import { chosenGradients, chosenRows, describeConformance } from "./conformance-rows.ts";

describeConformance(
  conformanceCases.filter((row) => !chosenRows.has(row) || (row.gradient !== undefined && !chosenGradients.has(row))),
  { values: (row) => !chosenRows.has(row), gradient: (row) => !chosenGradients.has(row) },
);
