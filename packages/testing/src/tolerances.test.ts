import { type DType, flattenTree, isFloat, type Tensor, trace } from "@skein/tensor-core";
import { operators } from "@skein/tensor-core/backend";
import { describe, expect, test } from "vitest";
import { conformanceCases } from "./cases/table.ts";
import { storageTolerance, type Tolerance } from "./closeness.ts";
import { gradientToleranceOf, toleranceOf } from "./conformance.ts";
import type { ConformanceCase } from "./conformance-case.ts";

const outputDtypes = (row: ConformanceCase): DType[] => {
  const dtypes: DType[] = [];
  trace((...inputs: Tensor[]) => {
    const { leaves } = flattenTree<Tensor>(row.fn(...inputs));
    dtypes.push(...leaves.map(({ dtype }) => dtype));
    return leaves;
  }, row.inputs as never);
  return dtypes;
};

const rows = conformanceCases.map((row) => ({ row, label: `${row.op}: ${row.name}`, dtypes: outputDtypes(row) }));
const single = rows.filter(({ dtypes }) => dtypes.includes("f32"));

/** Returns the largest tolerance of the given conformance cases. */
const loosest = (of: readonly ConformanceCase[]): Tolerance => {
  const tolerances = of.map((row) => toleranceOf(row, "f32"));
  return {
    absolute: Math.max(0, ...tolerances.map(({ absolute }) => absolute)),
    relative: Math.max(0, ...tolerances.map(({ relative }) => relative)),
  };
};

/** Sixteen unit roundoffs: the error of a few operations. */
const few = 2 ** -20;

/** Lists the parts of a tolerance that exceed `factor` times `bound`, and a few rounding errors. */
const excess = (tolerance: Tolerance, bound: Tolerance, factor: number): string[] =>
  (["absolute", "relative"] as const).flatMap((part) =>
    tolerance[part] > Math.max(factor * bound[part], few)
      ? [`${part}: ${tolerance[part]} > ${factor} · ${bound[part]}`]
      : [],
  );

describe("tolerances of the conformance table", () => {
  test("checks a gradient with at most ten times the tolerance of its row's results", () => {
    const found = rows
      .filter(({ row }) => row.gradient !== undefined)
      .flatMap(({ row, label }) =>
        excess(gradientToleranceOf(row), toleranceOf(row, "f32"), 10).map((reason) => `${label}: ${reason}`),
      );
    expect(found).toEqual([]);
  });

  test("gives a row with a gradient no more tolerance than the operator's rows without", () => {
    const found = single
      // Operators that compute gradients are compared with their forward operators below.
      .filter(({ row }) => row.gradient !== undefined && !row.op.includes("-backward"))
      .flatMap(({ row, label }) => {
        const without = single
          .filter(({ row: other }) => other.op === row.op && other.gradient === undefined)
          .map(({ row: other }) => other);
        if (without.length === 0) return [];
        return excess(toleranceOf(row, "f32"), loosest(without), 1).map((reason) => `${label}: ${reason}`);
      });
    expect(found).toEqual([]);
  });

  test("gives an operator that computes gradients at most ten times the tolerance of its forward operator", () => {
    const found = single.flatMap(({ row, label }) => {
      const forward = /^(.+)-backward/.exec(row.op)?.[1];
      if (forward === undefined) return [];
      expect(operators[forward], forward).toBeDefined();
      const bound = loosest(single.filter(({ row: other }) => other.op === forward).map(({ row: other }) => other));
      return excess(toleranceOf(row, "f32"), bound, 10).map((reason) => `${label}: ${reason}`);
    });
    expect(found).toEqual([]);
  });

  test.each(["f16", "bf16"] as const)(
    "allows results in %s two unit roundoffs plus the tolerance of the same row in f32",
    (dtype) => {
      const found = rows
        .filter(({ dtypes }) => dtypes.includes(dtype))
        .flatMap(({ row, label }) => {
          const wide = rows.find(
            ({ label: other, dtypes }) =>
              label === `${other}, ${dtype}` && dtypes.every((own) => !isFloat(own) || own === "f32"),
          );
          const allowed = wide === undefined ? { absolute: 0, relative: 0 } : toleranceOf(wide.row, "f32");
          const own = toleranceOf(row, dtype);
          return (["absolute", "relative"] as const).flatMap((part) =>
            own[part] > allowed[part] + storageTolerance[dtype][part] ? [`${label}: ${part} ${own[part]}`] : [],
          );
        });
      expect(found).toEqual([]);
    },
  );
});
