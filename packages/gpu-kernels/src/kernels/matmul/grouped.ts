import type { DeviceFacts, KernelPlan } from "../../kernel.ts";
import { directPass, directShapes } from "./direct.ts";
import { type Placement, rowsOfGroups, sumsOfGroups } from "./placement.ts";
import { flopsOf, type Product } from "./product.ts";
import { fitsDevice, registerTiledPass, type TileShape, tileShapes } from "./register-tiled.ts";
import { whole } from "./split-inner.ts";

/** Number of workgroups below which a larger tile leaves cores of a large GPU idle. */
const enoughGroups = 192;

/**
 * Returns the plan of a grouped product, in which `placement` assigns the tiles to groups. Software adapters compute
 * tiles in registers, directly from memory. GPUs use the largest tile in workgroup memory that a typical group fills
 * and that gives enough workgroups.
 */
const plan = (product: Product, placement: Placement, usualRows: number, facts: DeviceFacts): KernelPlan => {
  if (facts.software) {
    const shape = directShapes[flopsOf(product) <= 2 ** 25 ? 0 : 1]!;
    return { passes: [directPass(product, shape, whole(product), placement)] };
  }
  const fitting = tileShapes.filter((tile) => fitsDevice(tile, facts));
  const tiles = ({ rows, columns }: TileShape): number =>
    placement.layers * Math.ceil(product.rows / rows) * Math.ceil(product.columns / columns);
  const filling = fitting.findLast((tile) => tile.rows <= Math.max(32, usualRows) && tiles(tile) >= enoughGroups);
  const tile = filling ?? fitting[0];
  return {
    passes: [
      tile === undefined
        ? directPass(product, directShapes[0]!, whole(product), placement)
        : registerTiledPass(product, tile, whole(product), placement),
    ],
  };
};

interface GroupedSizes {
  readonly rows: number;
  readonly inner: number;
  readonly columns: number;
  readonly groups: number;
}

/** Returns the plan of `y[r] = x[r] · w[g]`. Cost: one product of all rows, plus up to one tile per group. */
export const groupedPlan = (
  { rows, inner, columns, groups }: GroupedSizes,
  transposeB: boolean,
  facts: DeviceFacts,
): KernelPlan => {
  const product: Product = {
    batch: 1,
    rows,
    columns,
    inner,
    transposeA: false,
    transposeB,
    dtype: "f32",
    resultDtype: "f32",
  };
  return plan(product, rowsOfGroups(product, groups), rows / groups, facts);
};

/** Returns the plan of `dw[g] = Σ_r x[r]ᵀ · dy[r]`. Cost: `groups` products whose sums are as long as the groups. */
export const groupedWeightPlan = ({ rows, inner, columns, groups }: GroupedSizes, facts: DeviceFacts): KernelPlan => {
  const product: Product = {
    batch: groups,
    rows: inner,
    columns,
    inner: rows,
    transposeA: true,
    transposeB: false,
    dtype: "f32",
    resultDtype: "f32",
  };
  return plan(product, sumsOfGroups(product, groups), inner, facts);
};
