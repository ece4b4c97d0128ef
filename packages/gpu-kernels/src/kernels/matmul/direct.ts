import type { Pass } from "../../kernel.ts";
import { type Placement, plainPlacement } from "./placement.ts";
import { matrixSizes, operandOf, sinkOf } from "./operands.ts";
import { featuresOf, layoutOf, type MatmulVariant, type Product, range } from "./product.ts";
import { type Splits, splitPlan, whole } from "./split-inner.ts";
import { splitsOf } from "./sum-order.ts";
import { wgsl } from "../../wgsl.ts";

const lanes = 64;

/** Number of elements per invocation: `rows × columns`, both multiples of 4. */
export interface DirectShape {
  readonly rows: number;
  readonly columns: number;
}

/** Returns the number of invocations along the columns: all lanes, or fewer if there are not enough columns. */
const lanesAlongColumns = ({ columns }: Product, shape: DirectShape): number => {
  let count = lanes;
  while (count > 1 && (count / 2) * shape.columns >= columns) count /= 2;
  return count;
};

const groupsOf = (
  product: Product,
  shape: DirectShape,
  { tilesM }: Placement = plainPlacement(product, whole(product)),
): readonly [alongRows: number, alongColumns: number] => {
  const lanesN = lanesAlongColumns(product, shape);
  return [Math.ceil(tilesM(shape.rows) / (lanes / lanesN)), Math.ceil(product.columns / (shape.columns * lanesN))];
};

/**
 * Computes a product without workgroup memory or barriers. Every invocation computes a tile of registers directly from
 * vectors in memory. The invocations of a workgroup are adjacent along the columns, so b is read in complete cache
 * lines, and all invocations read the same address of a. Used for few rows, because b is then read only once, and for
 * software adapters, whose caches replace workgroup memory.
 */
export const directPass = (
  product: Product,
  shape: DirectShape,
  splits: Splits,
  placement: Placement = plainPlacement(product, splits),
): Pass => {
  const { batch } = product;
  const partial = splits.count > 1;
  const [a, b, y] = [operandOf(product, "a"), operandOf(product, "b"), sinkOf(product, partial)];
  const lanesN = lanesAlongColumns(product, shape);
  const [groupsM, groupsN] = groupsOf(product, shape, placement);
  const [rows, partsM, partsN] = [range(shape.rows), range(shape.rows / 4), range(shape.columns / 4)];
  const fetches = (tail: boolean): string =>
    [
      ...partsM.map((p) => `a${p} = fetch_a${tail ? "_tail" : ""}(base_a, m0 + ${4 * p}u, k${tail ? ", k_end" : ""});`),
      ...partsN.map((q) => `b${q} = fetch_b${tail ? "_tail" : ""}(base_b, n0 + ${4 * q}u, k${tail ? ", k_end" : ""});`),
    ].join(" ");
  const multiply = range(4).flatMap((j) =>
    rows.flatMap((i) =>
      partsN.map((q) => `sum_${i}_${q} = fma(vec4<f32>(a${i >> 2}[${j}][${i & 3}]), b${q}[${j}], sum_${i}_${q});`),
    ),
  );
  const stores = rows.map(
    (i) => wgsl`
      if (m0 + ${i}u < row_end) {
        let row_at = (layer * sizes.rows + m0 + ${i}u) * sizes.columns;
        ${partsN.map((q) => `store_y(row_at, n0 + ${4 * q}u, sum_${i}_${q});`)}
      }
    `,
  );
  return {
    label: `${placement.label} ${layoutOf(product)} direct ${shape.rows}x${shape.columns}${partial ? `, ${splits.count} splits` : ""}`,
    bindings: [a.binding, b.binding, ...placement.bindings, y.binding],
    workgroupSize: lanes,
    groups: placement.layers * groupsM * groupsN,
    sizes: {
      ...matrixSizes(product),
      groups_m: groupsM,
      groups_n: groupsN,
      batch,
      split_length: splits.length,
      ...placement.sizes,
    },
    ...featuresOf(product),
    code: wgsl`
      ${a.code}
      ${b.code}
      ${y.code}
      ${placement.declarations}
      fn main(group: u32, lane: u32) {
        let groups = sizes.groups_m * sizes.groups_n;
        let layer = group / groups;
        let in_layer = group - layer * groups;
        // Neighbouring workgroups share columns of b.
        let tile_m = in_layer % sizes.groups_m${lanesN === lanes ? "" : ` * ${lanes / lanesN}u + lane / ${lanesN}u`};
        let n0 = (in_layer / sizes.groups_m * ${lanesN}u + ${lanesN === lanes ? "lane" : `lane % ${lanesN}u`}) * ${shape.columns}u;
        if (n0 >= sizes.columns) { return; }
        ${placement.define(shape.rows, false)}
        ${rows.flatMap((i) => partsN.map((q) => `var sum_${i}_${q} = vec4<f32>();`))}
        ${[...partsM.map((p) => `var a${p} = mat4x4<f32>();`), ...partsN.map((q) => `var b${q} = mat4x4<f32>();`)]}
        for (var k = k_begin; k < k_end; k += 4u) {
          ${fetches(!placement.inSteps(4))}
          ${multiply}
        }
        ${stores}
      }
    `,
  };
};

export const directShapes: readonly DirectShape[] = [
  { rows: 4, columns: 4 },
  { rows: 8, columns: 4 },
  { rows: 8, columns: 8 },
];

export const directName = ({ rows, columns }: DirectShape): string => `${rows}x${columns}`;

export const direct = (shape: DirectShape): MatmulVariant => ({
  name: `direct-${directName(shape)}`,
  sums: "in order",
  supports: ({ inner }) => inner > 0,
  plan: (product) => ({ passes: [directPass(product, shape, whole(product))] }),
});

/**
 * Returns a variant for few rows and a long inner dimension: the sums are split between workgroups, so that enough
 * elements of b are being loaded at a time.
 */
export const splitDirect = (shape: DirectShape): MatmulVariant => ({
  name: `split-direct-${directName(shape)}`,
  sums: "in pieces",
  supports: (product) => splitsOf(product).count > 1,
  plan: (product) => splitPlan(product, splitsOf(product), (cut) => directPass(product, shape, cut)),
});
