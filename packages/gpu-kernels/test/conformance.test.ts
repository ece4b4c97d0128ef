import { conformanceCases } from "@skein/testing";
import { chosenGradients, chosenRows, describeConformance } from "./conformance-rows.ts";

// Derivatives are graphs of operators that have rows of their own: of each operator one row's gradient here. What is
// left out here is in `conformance.full.test.ts`.
describeConformance(
  conformanceCases.filter((row) => chosenRows.has(row) || chosenGradients.has(row)),
  { values: (row) => chosenRows.has(row), gradient: (row) => chosenGradients.has(row) },
);
