import { type ConformanceCase, conformanceCases } from "@skein/testing";
import { expect, test } from "vitest";
import { chosenGradients, chosenRows, describeConformance } from "./conformance-rows.ts";

// Derivatives are graphs of operators that have rows of their own: of each operator one row's gradient here. What is
// left out here is in `conformance.full.test.ts`.
describeConformance(
  conformanceCases.filter((row) => chosenRows.has(row) || chosenGradients.has(row)),
  { values: (row) => chosenRows.has(row), gradient: (row) => chosenGradients.has(row) },
);

test("every operator has a row by default", () => {
  const operators = (rows: Iterable<ConformanceCase>): string[] =>
    [...new Set([...rows].map(({ op }) => op))].toSorted();
  expect(operators(chosenRows)).toEqual(operators(conformanceCases));
});
