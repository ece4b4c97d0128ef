import { ArgumentError } from "@skein/tensor-core";
import { type CollectiveModel, collectiveSeconds } from "../collective-model.ts";
import { checkSeconds, type MoeLayerPass } from "../planners/moe/layer-pass.ts";
import {
  fastest,
  type PipelineChoices,
  type PipelinePlan,
  pipelineCandidates,
} from "../planners/moe/pipeline-degree.ts";

/** Backward pass of a transformer layer: first its experts, then all other operators (the dense part). */
export interface GradientLayer {
  readonly experts: MoeLayerPass;
  /** Seconds of the dense part. During this time no tokens are sent between nodes. */
  readonly denseSeconds: number;
  /**
   * Gradient bytes of this layer to all-reduce, a whole number. Gradients are ready when the layer's backward pass
   * ends.
   */
  readonly gradientBytes: number;
}

/** Gradients of earlier layers, in backward order, that are all-reduced during the backward pass of one layer. */
export interface LayerGradients {
  /** Gradient bytes to all-reduce between dispatch and combine. */
  readonly besideExpertsBytes: number;
  /** Gradient bytes to all-reduce during the dense part. */
  readonly besideDenseBytes: number;
  /** Pipeline of the layer's experts, including the all-reduce of `besideExpertsBytes`. */
  readonly pipeline: PipelinePlan;
  readonly denseSeconds: number;
}

export interface GradientPartition {
  /** Layers in the order of the backward pass. */
  readonly layers: readonly LayerGradients[];
  /** Gradient bytes to all-reduce after all layers. */
  readonly afterBytes: number;
  /** Seconds of the full backward pass, until the last all-reduce ends. */
  readonly seconds: number;
}

export interface GradientPartitionOptions extends PipelineChoices {
  /**
   * Number of equal parts into which the second step of the planner divides the bytes that the first step did not
   * assign. Default: 64.
   */
  readonly numParts?: number | undefined;
}

/** A time slot for one all-reduce in the backward pass. Each layer has two consecutive slots. */
interface Slot {
  /** Gradient bytes that are ready when the slot begins: gradients of all earlier layers in backward order. */
  readonly readyBytes: number;
  /** Seconds of the longest all-reduce that the slot hides completely. */
  readonly idleSeconds: number;
  /** Returns the duration of the slot in seconds if its gradient all-reduce takes `gradientSeconds`. */
  readonly secondsWith: (gradientSeconds: number) => number;
}

/**
 * Returns the maximum number of bytes, up to `most`, that can be all-reduced within `seconds`; 0 if the start-up takes
 * longer.
 */
const bytesWithin = (seconds: number, most: number, allReduce: CollectiveModel): number => {
  let [fits, tooMany] = [0, most + 1];
  while (tooMany - fits > 1) {
    const middle = fits + Math.floor((tooMany - fits) / 2);
    if (collectiveSeconds(allReduce, middle) <= seconds) fits = middle;
    else tooMany = middle;
  }
  return fits;
};

/**
 * First step of the planner: assigns to each slot, in order, the bytes whose all-reduce the slot hides. Bytes can
 * always move to a later slot, but unused idle time is lost. So filling the earliest slots first hides the most bytes.
 */
const fillIdle = (slots: readonly Slot[], allReduce: CollectiveModel): readonly number[] => {
  let sent = 0;
  return slots.map(({ readyBytes, idleSeconds }) => {
    const bytes = bytesWithin(idleSeconds, readyBytes - sent, allReduce);
    sent += bytes;
    return bytes;
  });
};

/**
 * Second step of the planner: distributes the remaining bytes, in parts, over the slots and the time after all layers,
 * so that the backward pass ends as early as possible. With E(0) = 0 and u parts sent up to a slot:
 *
 *     E(u) after a slot = min over v ≤ u of (E(v) before the slot + t_slot(first + part v … u))
 *
 * The ready gradients of a slot limit u, so that the bytes of the first step stay in their slot.
 */
const spreadRest = (
  slots: readonly Slot[],
  first: readonly number[],
  restBytes: number,
  numParts: number,
  seconds: (bytes: number) => number,
): readonly number[] => {
  const upTo = (part: number): number => Math.floor((restBytes * part) / numParts);
  let sentFirst = 0;
  let ends: readonly number[] = [0];
  const partsBefore: number[][] = [];
  for (const [slot, { readyBytes, secondsWith }] of slots.entries()) {
    const next: number[] = [];
    const before: number[] = [];
    sentFirst += first[slot]!;
    for (let u = 0; u <= numParts && sentFirst + upTo(u) <= readyBytes; u++) {
      next[u] = Infinity;
      // Tries the fewest parts in this slot first, so that among equal plans the parts stay in one slot.
      for (let v = Math.min(u, ends.length - 1); v >= 0; v--) {
        const end = ends[v]! + secondsWith(seconds(first[slot]! + upTo(u) - upTo(v)));
        if (end < next[u]!) [next[u], before[u]] = [end, v];
      }
    }
    ends = next;
    partsBefore.push(before);
  }
  let parts = 0;
  let best = Infinity;
  for (const [u, end] of ends.entries())
    if (end + seconds(restBytes - upTo(u)) < best) [best, parts] = [end + seconds(restBytes - upTo(u)), u];
  const more = slots.map(() => 0);
  for (let slot = slots.length - 1; slot >= 0; slot--) {
    const before = partsBefore[slot]![parts]!;
    more[slot] = upTo(parts) - upTo(before);
    parts = before;
  }
  return more;
};

/**
 * Decides how many gradient bytes of earlier layers are all-reduced during each layer's backward pass. With an
 * all-reduce of n bytes between dispatch and combine, a layer takes as long as its best pipeline with this all-reduce.
 * With an all-reduce of m bytes, the dense part takes max(dense part, t_ar(m)). The remaining bytes follow at the end:
 *
 *     minimize  Σ t_experts(t_ar(n_i)) + Σ max(dense_i, t_ar(m_i)) + t_ar(after)
 *
 * The first step fills the idle time of each slot, earliest slot first. The second step distributes the remaining bytes
 * by dynamic programming over `numParts` equal parts. The first step is optimal, because fewer gradients never make a
 * slot longer: any plan can be changed, without a later end, into a plan that fills idle time first. So the result is
 * optimal among plans that assign whole parts, and optimal among all plans if there are as many parts as bytes. All
 * bytes are assigned.
 *
 * For a fixed number of chunks, a second of exposed all-reduces costs a second in every slot. The second step saves
 * start-ups of chunks, because a layer with many gradients uses fewer chunks, and of all-reduces, because one message
 * replaces two messages.
 *
 * Cost: O(layers · (degrees · numParts² + simulations of all choices)); 48 layers take a few hundredths of a second.
 *
 * @param layers Layers in the order of the backward pass, starting with the last layer of the model.
 * @param allReduce Time model of an all-reduce as a function of its bytes; the time must not decrease with more bytes.
 * @throws ArgumentError if bytes are not integers, the number of parts is below 1, or a value is impossible.
 *
 * @example
 * ```ts
 * const leg = { model: { startupSeconds: 0.01, secondsPerByte: 1e-6 }, bytes: 1e6 };
 * const work = { startupSeconds: 0.01, workSeconds: 4 };
 * const pass = { allToAll: leg, allGather: leg, reduceScatter: leg, experts: work };
 * const layers = [0, 1].map(() => ({ experts: pass, denseSeconds: 1, gradientBytes: 1e6 }));
 * console.log(planGradientPartition(layers, leg.model).layers.length); // 2
 * ```
 * Source: the two steps of FSMoE, ASPLOS 2025; their second step is a random search. They count one start-up for both
 * slots of a layer, although a combine separates them.
 */
export const planGradientPartition = (
  layers: readonly GradientLayer[],
  allReduce: CollectiveModel,
  options: GradientPartitionOptions = {},
): GradientPartition => {
  const { numParts = 64, ...choices } = options;
  if (!(Number.isSafeInteger(numParts) && numParts >= 1))
    throw new ArgumentError(
      `numParts of a gradient partition is ${numParts}, but must be a whole number from 1; use 64, for example`,
    );
  let readyBytes = 0;
  const slots: Slot[] = [];
  const candidates = layers.map(({ experts, denseSeconds, gradientBytes }, layer) => {
    checkSeconds("its dense part", denseSeconds);
    if (!(Number.isSafeInteger(gradientBytes) && gradientBytes >= 0))
      throw new ArgumentError(
        `layer ${layer} has gradients of ${gradientBytes} bytes, but needs a whole number from 0; give the bytes of one rank`,
      );
    const layerCandidates = pipelineCandidates(experts, choices);
    const secondsWith = (gradientSeconds: number): number => fastest(layerCandidates, gradientSeconds).seconds;
    const without = secondsWith(0);
    const idleSeconds = Math.max(
      ...layerCandidates
        .filter(({ seconds }) => seconds === without)
        .map(({ seconds, fixedSeconds }) => seconds - fixedSeconds),
    );
    slots.push(
      { readyBytes, idleSeconds, secondsWith },
      { readyBytes, idleSeconds: denseSeconds, secondsWith: (seconds) => Math.max(denseSeconds, seconds) },
    );
    readyBytes += gradientBytes;
    return layerCandidates;
  });
  const seconds = (bytes: number): number => (bytes === 0 ? 0 : collectiveSeconds(allReduce, bytes));
  const first = fillIdle(slots, allReduce);
  const restBytes = first.reduce((rest, bytes) => rest - bytes, readyBytes);
  const more = spreadRest(slots, first, restBytes, numParts, seconds);
  const bytes = first.map((one, slot) => one + more[slot]!);
  const afterBytes = more.reduce((rest, one) => rest - one, restBytes);

  const planned = layers.map(
    ({ denseSeconds }, layer): LayerGradients => ({
      besideExpertsBytes: bytes[2 * layer]!,
      besideDenseBytes: bytes[2 * layer + 1]!,
      pipeline: fastest(candidates[layer]!, seconds(bytes[2 * layer]!)),
      denseSeconds: Math.max(denseSeconds, seconds(bytes[2 * layer + 1]!)),
    }),
  );
  return {
    layers: planned,
    afterBytes,
    seconds: planned.reduce((sum, layer) => sum + layer.pipeline.seconds + layer.denseSeconds, seconds(afterBytes)),
  };
};
