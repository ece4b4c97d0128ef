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
  unsupportedOnWebGpu,
  shadersOf,
  type WebGpuBackend,
} from "../src/index.ts";
import { hasAdapter, openBackend } from "./gpu.ts";

// Maximum number of elements of a gradient that is checked. Larger gradients only test wide rows, which the checks of
// values also test.
const maxElements = 4096;

/**
 * Rows whose gradients are checked by default: for each operator with a derivative, the largest row of moderate size.
 */
export const chosenGradients: ReadonlySet<ConformanceCase> = new Set(
  [
    ...Map.groupBy(
      conformanceCases.filter((row) => row.gradient !== undefined && inputElements(row) <= maxElements),
      ({ op }) => op,
    ).values(),
  ].map((rows) => rows.reduce((most, row) => (inputElements(row) > inputElements(most) ? row : most))),
);

/** Families of operators with the same kernel. The kernels of a family differ by one word of WGSL. */
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
 * Whether a row differs from other rows of its operator only in shapes and storage types. All operators of a family
 * have such rows under the same names.
 */
const isLayout = ({ name }: ConformanceCase): boolean =>
  /^(\[|all|first|last|middle|both|every|of nothing).*, \w+$/.test(name);

/**
 * Rows of families: for each layout, the row of one operator of the family, in rotation, so that each operator is
 * tested.
 */
const layoutsInTurn = families.flatMap((family) => {
  const rows = Map.groupBy(
    conformanceCases.filter((row) => family.includes(row.op) && isLayout(row)),
    ({ name }) => name,
  );
  return [...rows.values()].map((same, turn) => same[turn % same.length]!);
});

/** Facts of lavapipe. Used on every machine, so that the choice of variants does not depend on the machine. */
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

/** Returns the texts of the shaders of a row, each with its variant: operator, label without sizes, storage types. */
const shadersOfRow = (row: ConformanceCase): { readonly code: string; readonly variant: string }[] => {
  const run = (...inputs: Tensor[]): Tensor[] => flattenTree<Tensor>(row.fn(...inputs)).leaves;
  const { graph } = trace(run, row.inputs as never);
  if (unsupportedOnWebGpu(prepareForWebGpu(graph, software), software).length > 0) return [];
  const dtypes = row.inputs.map(({ dtype }) => dtype).join();
  return shadersOf(graph, software).map(({ code, labels }) => ({
    code,
    variant: `${row.op}, ${labels.join().replaceAll(/\d+/g, "#")}, ${dtypes}`,
  }));
};

/** Maximum number of rows per kernel variant that may compile new shaders. */
const rowsOfVariant = 1;

/**
 * Returns the rows whose shaders have all been compiled for earlier rows, and the first rows with a different text of a
 * variant.
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
 * Rows whose values are checked by default, because each pipeline takes a tenth of a second to compile. Two groups of
 * rows are omitted: layouts that are checked with a different operator of the family, and all rows with a different
 * text of a variant except the first.
 */
export const chosenRows: ReadonlySet<ConformanceCase> = new Set([
  ...fewOfVariants(conformanceCases.filter((row) => !families.flat().includes(row.op) || !isLayout(row))),
  ...layoutsInTurn,
]);

export interface ConformanceChecks {
  readonly values: (row: ConformanceCase) => boolean;
  /** Whether to check the gradient of a row. Called for rows that have a gradient. */
  readonly gradient: (row: ConformanceCase) => boolean;
}

/** Tests rows of the conformance table on this machine's adapter. The tests are skipped if there is no adapter. */
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
