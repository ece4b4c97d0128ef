import { add, foldIn, multiply, type NdArray, sum, type Tensor, valueAndGradWithAux } from "@skein/tensor-core";
import type { MoeFigures, MoeLayer } from "../src/index.ts";
import { keyOf } from "./tokens.ts";
import { type Levels, runRanks } from "./world.ts";

/** Parameters of any layer, as arrays. */
export interface LayerArrays {
  readonly gate: Readonly<Record<string, NdArray>>;
  readonly experts: Readonly<Record<string, NdArray>>;
  readonly shared?: Readonly<Record<string, NdArray>>;
}

/** Results of a step on one rank. */
export interface StepResult {
  readonly y: NdArray;
  readonly xGradient: NdArray;
  readonly gradients: LayerArrays;
  readonly loss: NdArray;
  readonly state: unknown;
  readonly figures: { readonly [name in keyof MoeFigures]: NdArray };
}

export type AnyLayer = MoeLayer<never, never>;

export interface StepOptions {
  /** Factor by which the auxiliary loss is multiplied in the gradients. Default: 1. */
  readonly lossScale?: number;
  readonly train?: boolean;
  /** Additional mesh axes of the ranks. Default: none. */
  readonly levels?: Levels;
  /** Name of the mesh axis that contains all ranks. Default: "expert". */
  readonly whole?: string;
}

/** Tokens of a rank, cotangents of its outputs, and its random key. */
export type RankTokens = readonly [x: NdArray, cotangent: NdArray, key: NdArray];

const started = new WeakMap<AnyLayer, Map<string, unknown>>();

/** Returns the initial parameters and state of each rank, from one key. */
export const initRanks = (
  layer: AnyLayer,
  numRanks: number,
  { levels = {}, whole = "expert" }: Pick<StepOptions, "levels" | "whole"> = {},
): { readonly params: LayerArrays; readonly state: unknown }[] => {
  const known = started.get(layer) ?? new Map<string, unknown>();
  const mesh = JSON.stringify([numRanks, levels, whole]);
  started.set(layer, known);
  const initial =
    known.get(mesh) ??
    runRanks(
      (key: Tensor) => layer.init(key),
      Array.from({ length: numRanks }, () => [keyOf(3)] as const),
      levels,
      whole,
    );
  known.set(mesh, initial);
  return initial as { readonly params: LayerArrays; readonly state: unknown }[];
};

/**
 * Runs the forward pass and computes all gradients on each rank.
 *
 * @param build returns the layer, inside of the trace, so that it can read the keys.
 */
export const stepOnRanks = (
  build: (key: Tensor) => AnyLayer,
  initial: readonly { readonly params: LayerArrays; readonly state: unknown }[],
  ranks: readonly RankTokens[],
  { lossScale = 1, train = true, levels = {}, whole }: StepOptions = {},
): StepResult[] => {
  const step = (begin: { params: never; state: never }, x: Tensor, cotangent: Tensor, key: Tensor) => {
    const layer = build(key);
    const loss = ([params, own]: readonly [never, Tensor]) => {
      const [y, state, report] = layer.apply(params, begin.state, own, { train, ...(key.rank === 1 && { key }) });
      return [add(sum(multiply(y, cotangent)), multiply(report.loss, lossScale)), { y, state, report }] as const;
    };
    const [, { y, state, report }, [gradients, xGradient]] = valueAndGradWithAux(loss as never)([
      begin.params,
      x,
    ] as never) as never as [
      Tensor,
      { y: Tensor; state: never; report: { loss: Tensor; figures: MoeFigures } },
      [never, Tensor],
    ];
    return { y, xGradient, gradients, loss: report.loss, state, figures: report.figures };
  };
  return runRanks(step as never, ranks.map((own, rank) => [initial[rank]!, ...own]) as never, levels, whole) as never;
};

/** Returns the key that a gate derives from the key of a step. */
export const gateKey = (key: Tensor): Tensor => foldIn(key, 0);
