import { InvariantError } from "@skein/tensor-core";
import type { Choices, DeviceFacts } from "../../kernel.ts";
import { flopsOf, type MatmulVariant, type Product } from "./product.ts";
import { sumOrderOf } from "./sum-order.ts";
import { tilesOf, tileShapes, tileName } from "./register-tiled.ts";
import { matmulVariant, supportedVariants } from "./variants.ts";

/** First of these names that can run. */
const firstSupported = (names: readonly string[], product: Product, facts: DeviceFacts): MatmulVariant => {
  for (const name of names) {
    const variant = matmulVariant(name);
    if (variant?.supports(product, facts)) return variant;
  }
  return matmulVariant("naive")!;
};

/** Workgroups below which a larger tile leaves parts of a large GPU idle. */
const enoughGroups = 192;

/**
 * On a processor. SwiftShader's subgroups of 4 run as one vector, whose lanes share rows by broadcast: 1.7 times the
 * direct tiles at 512³; lavapipe's of 8 gain nothing (docs/experiments.md).
 */
const softwareChoice = (flops: number, { maxSubgroupSize }: DeviceFacts): readonly string[] => {
  if (flops <= 2 ** 16) return ["naive"];
  if (maxSubgroupSize <= 4 && flops > 2 ** 20) return ["subgroup-8x4", "direct-8x8"];
  return [flops <= 2 ** 25 ? "direct-4x4" : "direct-8x4"];
};

/**
 * The rule of thumb for a device that was not measured. It keeps the order of sums of the product, so only what is fast
 * follows from the number of rows.
 */
export const staticChoice = (product: Product, facts: DeviceFacts): MatmulVariant => {
  const { rows, columns, inner } = product;
  const choose = (...names: string[]): MatmulVariant => firstSupported(names, product, facts);
  if (inner === 0) return choose("naive");
  const order = sumOrderOf(product, facts);
  if (order === "by matrices") return choose("subgroup-matrix-64x64");
  if (rows === 1 || columns === 1) return choose("matrix-vector");
  // On a processor the compiler of large shaders takes seconds: only products that earn them get one.
  if (facts.software) return choose(...softwareChoice(flopsOf(product), facts));
  if (rows <= 8) return choose("few-rows");
  if (order === "in pieces")
    return choose(
      "split-register-64x64-8x8",
      "split-register-64x64-4x4",
      "split-register-32x32-4x4",
      "split-direct-8x4",
    );
  // The largest tile of which there are enough; below that, make do with small tiles.
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

/** The variant that runs: the learned one where there is one for this product, else the rule's. */
export const chooseVariant = (
  product: Product,
  facts: DeviceFacts,
  { matmulVariant: learned }: Choices,
): MatmulVariant => {
  if (learned === undefined || product.inner === 0) return staticChoice(product, facts);
  const { batch, rows, columns, inner, transposeA, transposeB, dtype } = product;
  const name = learned({ batch, rows, columns, inner, transposeA, transposeB, dtype });
  const variant = matmulVariant(name);
  if (variant === undefined)
    throw new InvariantError(
      `the learned choice for matmul names the variant ${name}, which does not exist; there are ${supportedVariants(
        product,
        facts,
      )
        .map((known) => known.name)
        .join(", ")}; measure this device again`,
    );
  return variant.supports(product, facts) ? variant : staticChoice(product, facts);
};
