import type { NdArray } from "@skein/tensor-core";
import { geluExperts, moeLayer, type MoeLayerOptions } from "../src/index.ts";
import { counting } from "./routings.ts";
import type { AnyLayer, RankTokens } from "./step.ts";
import { keyOf, width } from "./tokens.ts";
import { partsOf } from "./world.ts";

export type Options = MoeLayerOptions<unknown, unknown, unknown, unknown>;

/** Returns a layer with small experts and the given options. */
export const layerOf = (options: Partial<Options> & Pick<Options, "gate">): AnyLayer =>
  moeLayer({
    experts: geluExperts({ width, hidden: 4, deviation: 0.7, outputDeviation: 0.7 }),
    ...options,
  } as Options) as never;

/** Splits tokens into equal parts, one per rank. Each rank gets a different key. */
export const ranksOf = (x: NdArray, numRanks: number): RankTokens[] => {
  const cotangents = partsOf(counting(x.shape, 1), numRanks);
  return partsOf(x, numRanks).map((own, rank) => [own, cotangents[rank]!, keyOf(rank)] as const);
};
