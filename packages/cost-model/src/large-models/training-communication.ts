import type { CollectiveKind } from "@skein/tensor-core/backend";
import { inTurn } from "../timeline.ts";
import { gatheredPassSeconds } from "./gathered-pass.ts";
import { operatorsOf } from "./modules.ts";
import type { Part } from "./operator.ts";
import { precisions } from "./precision.ts";
import type { AxisPrices } from "./rank-groups.ts";
import type { TrainingPlan } from "./training-configuration.ts";

/**
 * Collectives with the same purpose, such as the reduction of gradients. `calls`, `bytes` and `seconds` are totals per
 * step.
 */
export interface CollectiveRow {
  readonly name: string;
  readonly kind: CollectiveKind;
  readonly axis: "data" | "tensor";
  readonly ranks: number;
  readonly calls: number;
  /** Total bytes of all calls. Each call counts the larger of operand and result. */
  readonly bytes: number;
  readonly seconds: number;
}

/** Total communication of one step. */
export interface StepCommunication {
  readonly collectives: readonly CollectiveRow[];
  /**
   * Seconds per step in which ranks only wait for collectives: the full tensor-parallel communication, and the part of
   * other communication that computation does not hide.
   */
  readonly exposedSeconds: number;
}

/** Seconds of one repeat of a part in each pass, including tensor-parallel collectives. */
export interface PartSeconds {
  readonly part: Part;
  readonly forwardSeconds: number;
  readonly backwardSeconds: number;
}

const bytesOf = (
  part: Part,
  plan: TrainingPlan,
): { readonly gradients: number; readonly weights: number; readonly updated: number } => {
  const trainable = operatorsOf(part).reduce((sum, operator) => sum + operator.trainable, 0);
  const { gradient, weight } = precisions[plan.precision];
  return {
    gradients: trainable * gradient,
    weights: operatorsOf(part).reduce((sum, { weightBytes }) => sum + weightBytes, 0),
    updated: trainable * weight,
  };
};

/**
 * Returns the number of tensor-parallel all-reduces per layer: two in the forward pass, two in the backward pass, and
 * two more if the forward pass is recomputed.
 */
export const tensorCalls = ({
  recomputation,
}: TrainingPlan): { readonly forward: number; readonly backward: number } => ({
  forward: 2,
  backward: recomputation === "full" ? 4 : 2,
});

/**
 * Predicts the time of the communication between data-parallel ranks in a step. The collectives depend on the ZeRO
 * stage:
 *
 * - Stage 0: each part's gradients are all-reduced when they are ready, during the rest of the last accumulated batch's
 *   backward pass.
 * - Stage 1: reduce-scatter instead of all-reduce, then an exposed all-gather of the new weights.
 * - Stage 2: as stage 1, but gradients are reduced after every batch.
 * - Stage 3: gradients as in stage 2; weights are gathered part by part in both passes, one part ahead.
 *
 * Source: Rajbhandari et al. 2019, arXiv 1910.02054, section 7; the order of overlapped collectives: Shi et al. 2018,
 * arXiv 1805.03812.
 */
export const dataCommunication = (
  plan: TrainingPlan,
  parts: readonly PartSeconds[],
  prices: AxisPrices,
): StepCommunication => {
  const { zeroStage, accumulation } = plan;
  if (prices.ranks === 1) return { collectives: [], exposedSeconds: 0 };
  const units = parts.flatMap((of) =>
    Array.from({ length: of.part.repeats }, () => ({ ...of, ...bytesOf(of.part, plan) })),
  );
  const backward = units.toReversed();
  const reduction: CollectiveKind = zeroStage === 0 ? "all-reduce" : "reduce-scatter";
  const reductions = zeroStage >= 2 ? accumulation : 1;
  const row = (name: string, kind: CollectiveKind, times: number, sizes: readonly number[]): CollectiveRow => {
    const sent = sizes.filter((bytes) => bytes > 0);
    const total = (of: (bytes: number) => number): number => times * sent.reduce((sum, bytes) => sum + of(bytes), 0);
    const seconds = total((bytes) => prices.secondsOf(kind, bytes));
    return {
      name,
      kind,
      axis: "data",
      ranks: prices.ranks,
      calls: times * sent.length,
      bytes: total((bytes) => bytes),
      seconds,
    };
  };
  const gradients = row(
    `gradients`,
    reduction,
    reductions,
    units.map(({ gradients }) => gradients),
  );

  if (zeroStage === 3) {
    const gather = (bytes: number): number => prices.secondsOf("all-gather", bytes);
    const exposed = (
      seconds: (unit: (typeof units)[number]) => number,
      order: typeof units,
      reduces: boolean,
    ): number => {
      const pass = order.map((unit) => ({
        gatherSeconds: gather(unit.weights),
        computeSeconds: seconds(unit),
        reduceSeconds: reduces ? prices.secondsOf(reduction, unit.gradients) : 0,
      }));
      return gatheredPassSeconds(pass) - pass.reduce((sum, { computeSeconds }) => sum + computeSeconds, 0);
    };
    const weights = units.map(({ weights }) => weights);
    return {
      collectives: [
        row("weights, forward", "all-gather", accumulation, weights),
        row("weights, backward", "all-gather", accumulation, weights),
        gradients,
      ],
      exposedSeconds:
        accumulation *
        (exposed(({ forwardSeconds }) => forwardSeconds, units, false) +
          exposed(({ backwardSeconds }) => backwardSeconds, backward, true)),
    };
  }

  let ready = 0;
  const buckets = backward
    .map(({ gradients, backwardSeconds }) => ({ bytes: gradients, readySeconds: (ready += backwardSeconds) }))
    .filter(({ bytes }) => bytes > 0);
  const kind = zeroStage === 0 ? "all-reduce" : "reduce-scatter";
  const end = inTurn(kind, buckets, prices.modelOf(kind)).at(-1)?.endSeconds ?? 0;
  const exposed = reductions * Math.max(0, end - ready);
  if (zeroStage === 0) return { collectives: [gradients], exposedSeconds: exposed };
  const updated = row("updated weights", "all-gather", 1, [units.reduce((sum, { updated }) => sum + updated, 0)]);
  return { collectives: [gradients, updated], exposedSeconds: exposed + updated.seconds };
};
