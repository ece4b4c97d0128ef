import {
  checkGradientValues,
  checkValues,
  type ConformanceCase,
  conformanceCases,
  inputElements,
} from "@skein/testing";
import { flattenTree, type Tensor, trace } from "@skein/tensor-core";
import { afterAll, beforeAll, describe, test } from "vitest";
import {
  type DeviceFacts,
  minimalDevice,
  prepareForWebGpu,
  unsupportedReasons,
  shadersOf,
  type WebGpuBackend,
} from "../src/index.ts";
import { hasAdapter, openBackend } from "./gpu.ts";

// Larger gradients only test wide rows, which the values also test.
const maxElements = 4096;

/** For each operator with a derivative, the largest row of moderate size whose gradient is checked. */
export const chosenGradients: ReadonlySet<ConformanceCase> = new Set(
  [
    ...Map.groupBy(
      conformanceCases.filter((row) => row.gradient !== undefined && inputElements(row) <= maxElements),
      ({ op }) => op,
    ).values(),
  ].map((rows) => rows.reduce((most, row) => (inputElements(row) > inputElements(most) ? row : most))),
);

/** Operators of the same kernel, which differ by one word of WGSL. */
const families: readonly (readonly string[])[] = [
  ["add", "equal", "bitwise-and", "subtract", "not-equal", "bitwise-or", "multiply", "less", "bitwise-xor"],
  [
    "divide",
    "less-equal",
    "logical-and",
    "maximum",
    "greater",
    "logical-or",
    "minimum",
    "greater-equal",
    "logical-xor",
  ],
  ["sum", "reduce-max", "reduce-min"],
];

/**
 * Whether a row differs only in shapes and storage types from other rows. A family has such rows under the same names.
 */
const isLayout = ({ name }: ConformanceCase): boolean =>
  /^(\[|all|first|last|middle|both|every|of nothing).*, \w+$/.test(name);

/** For each layout of a family, the row of one operator, in rotation, so that each operator is tested. */
const layoutsInTurn = families.flatMap((family) => {
  const rows = Map.groupBy(
    conformanceCases.filter((row) => family.includes(row.op) && isLayout(row)),
    ({ name }) => name,
  );
  return [...rows.values()].map((same, turn) => same[turn % same.length]!);
});

/** Facts of lavapipe, so that the choice of variants does not depend on the machine. */
const software: DeviceFacts = {
  ...minimalDevice,
  adapter: "a processor that pretends to be a GPU",
  software: true,
  f16: true,
  subgroups: true,
  maxSubgroupSize: 4,
  maxBindings: 16,
  maxWorkgroupSize: 1024,
  maxWorkgroupBytes: 32_768,
};

/** Texts of the shaders of a row, each with its variant: operator, label without sizes, storage types. */
const shadersOfRow = (row: ConformanceCase): { readonly code: string; readonly variant: string }[] => {
  const run = (...inputs: Tensor[]): Tensor[] => flattenTree<Tensor>(row.fn(...inputs)).leaves;
  const { graph } = trace(run, row.inputs as never);
  if (unsupportedReasons(prepareForWebGpu(graph, software), software).length > 0) return [];
  const dtypes = row.inputs.map(({ dtype }) => dtype).join();
  return shadersOf(graph, software).map(({ code, labels }) => ({
    code,
    variant: `${row.op}, ${labels.join().replaceAll(/\d+/g, "#")}, ${dtypes}`,
  }));
};

/** Number of rows for which each kernel variant is compiled again. */
const rowsOfVariant = 1;

/**
 * The rows that need no shader that earlier rows have not compiled, and the first rows with another text of a variant.
 */
const fewOfVariants = (rows: readonly ConformanceCase[]): ConformanceCase[] => {
  const compiled = new Set<string>();
  const taken = new Map<string, number>();
  return rows.filter((row) => {
    const fresh = shadersOfRow(row).filter(({ code }) => !compiled.has(code));
    const variants = new Set(fresh.map(({ variant }) => variant));
    if (fresh.length > 0 && [...variants].every((variant) => (taken.get(variant) ?? 0) >= rowsOfVariant)) return false;
    for (const { code } of fresh) compiled.add(code);
    for (const variant of variants) taken.set(variant, (taken.get(variant) ?? 0) + 1);
    return true;
  });
};

/**
 * Rows whose values are checked by default, because each pipeline takes a tenth of a second to compile. Omitted:
 * layouts that are checked with another operator of the family, and rows after the first with another text of a
 * variant.
 */
export const chosenRows: ReadonlySet<ConformanceCase> = new Set([
  ...fewOfVariants(conformanceCases.filter((row) => !families.flat().includes(row.op) || !isLayout(row))),
  ...layoutsInTurn,
]);

export interface ConformanceChecks {
  readonly values: (row: ConformanceCase) => boolean;
  /** Called for rows that have a gradient. */
  readonly gradient: (row: ConformanceCase) => boolean;
}

/** Check rows of the conformance table on this machine's adapter. Skipped without an adapter. */
export const describeConformance = (
  rows: readonly ConformanceCase[],
  { values, gradient }: ConformanceChecks,
): void => {
  describe.skipIf(!hasAdapter)("conformance on WebGPU", () => {
    let backend: WebGpuBackend;
    beforeAll(async () => {
      backend = await openBackend();
    });
    afterAll(() => backend.close());

    test.each(rows.map((row) => [`${row.op}: ${row.name}`, row] as const))("%s", async (_, row) => {
      if (values(row)) await checkValues(row, backend);
      if (row.gradient !== undefined && gradient(row)) await checkGradientValues(row, backend);
    });
  });
};
