import { checkGradientRule, composedCases, conformanceCases, inputElements } from "@skein/testing";
import { operators } from "@skein/tensor-core/backend";
import { describe, expect, test } from "vitest";

const rows = conformanceCases.filter((row) => row.gradient !== undefined && inputElements(row) <= 2000);

describe("gradient rules equal central differences", () => {
  const composed = composedCases.filter((row) => row.gradient !== undefined);
  test.each([...rows, ...composed].map((row) => [`${row.op}: ${row.name}`, row] as const))("%s", (_, row) =>
    checkGradientRule(row),
  );
});

test("every operator with a gradient rule is differentiated by some row", () => {
  const differentiated = new Set(rows.map((row) => row.op));
  const missing = Object.values(operators).filter(
    (operator) => operator.vjp !== undefined && operator.collective === undefined && !differentiated.has(operator.name),
  );
  expect(missing.map((operator) => operator.name)).toEqual([]);
});
