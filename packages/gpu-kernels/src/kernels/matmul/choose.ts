import { InvariantError } from "@skein/tensor-core";
import type { KernelChoices, DeviceFacts } from "../../kernel.ts";
import { flopsOf, type MatmulVariant, type Product } from "./product.ts";
import { sumOrderOf } from "./sum-order.ts";
import { tilesOf, tileShapes, tileName } from "./register-tiled.ts";
import { matmulVariant, supportedVariants } from "./variants.ts";

/** Returns the first of the named variants that supports the product. */
const firstSupported = (names: readonly string[], product: Product, facts: DeviceFacts): MatmulVariant => {
  for (const name of names) {
    const variant = matmulVariant(name);
    if (variant?.supports(product, facts)) return variant;
  }
  return matmulVariant("naive")!;
};

/** Number of workgroups below which a larger tile leaves cores of a large GPU idle. */
const enoughGroups = 192;

/**
 * Returns the names of variants for software adapters, in order of preference. SwiftShader's subgroups of 4 run as one
 * vector whose lanes share rows by broadcast: 1.7 times the speed of direct tiles at 512³. On lavapipe, subgroups of 8
 * are not faster (docs/experiments.md).
 */
const softwareChoice = (flops: number, { maxSubgroupSize }: DeviceFacts): readonly string[] => {
  if (flops <= 2 ** 16) return ["naive"];
  if (maxSubgroupSize <= 4 && flops > 2 ** 20) return ["subgroup-8x4", "direct-8x8"];
  return [flops <= 2 ** 25 ? "direct-4x4" : "direct-8x4"];
};

/**
 * Chooses a variant by a heuristic, for devices without measurements. The choice does not change the product's order of
 * additions, so the number of rows affects only the speed.
 */
export const staticChoice = (product: Product, facts: DeviceFacts): MatmulVariant => {
  const { rows, columns, inner } = product;
  const choose = (...names: string[]): MatmulVariant => firstSupported(names, product, facts);
  if (inner === 0) return choose("naive");
  const order = sumOrderOf(product, facts);
  if (order === "by matrices") return choose("subgroup-matrix-64x64");
  if (rows === 1 || columns === 1) return choose("matrix-vector");
  // Software adapters take seconds to compile large shaders, so large shaders are only used for products with enough
  // work.
  if (facts.software) return choose(...softwareChoice(flopsOf(product), facts));
  if (rows <= 8) return choose("few-rows");
  if (order === "in pieces")
    return choose(
      "split-register-64x64-8x8",
      "split-register-64x64-4x4",
      "split-register-32x32-4x4",
      "split-direct-8x4",
    );
  // The largest tile that gives enough workgroups, or a small tile if there is no such tile.
  const large = [...tileShapes]
    .reverse()
    .filter((tile) => tile.perRows * tile.perColumns === 64 || tile.rows * tile.columns <= 64 * 64);
  const filling = large.find(
    (tile) =>
      tilesOf(product, tile) >= enoughGroups && matmulVariant(`register-${tileName(tile)}`)!.supports(product, facts),
  );
  if (filling !== undefined) return choose(`register-${tileName(filling)}`);
  return choose("register-32x32-4x4", "direct-4x4");
};

/** Returns the measured choice for this product, or the choice of the rule if this product has no measured choice. */
export const chooseVariant = (
  product: Product,
  facts: DeviceFacts,
  { matmulVariant: learned }: KernelChoices,
): MatmulVariant => {
  if (learned === undefined || product.inner === 0) return staticChoice(product, facts);
  const { batch, rows, columns, inner, transposeA, transposeB, dtype } = product;
  const name = learned({ batch, rows, columns, inner, transposeA, transposeB, dtype });
  const variant = matmulVariant(name);
  if (variant === undefined)
    throw new InvariantError(
      `the measured choice for matmul names the variant ${name}, which does not exist; use one of ${supportedVariants(
        product,
        facts,
      )
        .map((known) => known.name)
        .join(", ")}; measure this device again`,
    );
  return variant.supports(product, facts) ? variant : staticChoice(product, facts);
};
