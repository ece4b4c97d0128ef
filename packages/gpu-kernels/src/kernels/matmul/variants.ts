import type { DeviceFacts } from "../../kernel.ts";
import { direct, directShapes, splitDirect } from "./direct.ts";
import { fewRows, matrixVector } from "./matrix-vector.ts";
import { naive } from "./naive.ts";
import type { MatmulVariant, Product } from "./product.ts";
import { registerTiled, splitRegisterTiled, tileShapes } from "./register-tiled.ts";
import { subgroupMatrix } from "./subgroup-matrix.ts";
import { subgroup } from "./subgroup.ts";
import { tiled } from "./tiled.ts";
import { transposedFirst } from "./transposed-first.ts";

const registers = tileShapes.map(registerTiled);
const directs = directShapes.map(direct);

/** All matmul variants. To add a variant, add one file, and one row here. */
export const matmulVariants: readonly MatmulVariant[] = [
  naive,
  tiled,
  ...registers,
  ...tileShapes.map(splitRegisterTiled),
  ...directs,
  ...directShapes.map(splitDirect),
  matrixVector,
  fewRows,
  subgroup,
  subgroupMatrix,
  ...[...registers, ...directs].map(transposedFirst),
];

const byName: ReadonlyMap<string, MatmulVariant> = new Map(matmulVariants.map((variant) => [variant.name, variant]));

export const matmulVariant = (name: string): MatmulVariant | undefined => byName.get(name);

export const supportedVariants = (product: Product, facts: DeviceFacts): readonly MatmulVariant[] =>
  matmulVariants.filter((variant) => variant.supports(product, facts));
