import { conformanceCases } from "@skein/testing";
import { describeConformance, chosenGradients } from "./conformance-rows.ts";

// Derivatives are graphs of operators that have rows of their own: of each operator one row's gradient here, the others' in `conformance.full.test.ts`.
describeConformance(conformanceCases, { values: () => true, gradient: (row) => chosenGradients.has(row) });
