import { conformanceCases } from "@skein/testing";
import { describeConformance, chosenGradients } from "./conformance-rows.ts";

describeConformance(
  conformanceCases.filter((row) => row.gradient !== undefined && !chosenGradients.has(row)),
  { values: () => false, gradient: () => true },
);
