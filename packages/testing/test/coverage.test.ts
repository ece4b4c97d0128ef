import { conformanceCases } from "@skein/testing";
import { operators, roleOf } from "@skein/tensor-core/backend";
import { expect, test } from "vitest";

test("every operator has a row", () => {
  const covered = new Set(conformanceCases.map((row) => row.op));
  // Collectives have their own laws and parity tests. Arguments are in every row.
  const missing = Object.values(operators).filter(
    ({ name, collective }) =>
      collective === undefined && !["argument", "done"].includes(roleOf({ op: name }) ?? "") && !covered.has(name),
  );
  expect(missing.map(({ name }) => name)).toEqual([]);
});
