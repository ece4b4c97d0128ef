import { type ConformanceCase, conformanceCases } from "@skein/testing";
import { expect, test } from "vitest";
import { chosenGradients, chosenRows, describeConformance } from "./conformance-rows.ts";

// Derivatives are graphs of operators that have their own rows, so only the gradient of one row per operator is checked
// here. `conformance.full.test.ts` checks all other rows.
describeConformance(
  conformanceCases.filter((row) => chosenRows.has(row) || chosenGradients.has(row)),
  { values: (row) => chosenRows.has(row), gradient: (row) => chosenGradients.has(row) },
);

test("every operator has a row by default", () => {
  const operators = (rows: Iterable<ConformanceCase>): string[] =>
    [...new Set([...rows].map(({ op }) => op))].toSorted();
  expect(operators(chosenRows)).toEqual(operators(conformanceCases));
});
