// Symbols: T tokens per rank, K experts per token, E experts, C slots per expert for the tokens of one rank, D values
// per token, P ranks that share the experts, U groups of ranks at a level, R rows that a rank sends.
import { ArgumentError } from "@skein/tensor-core";
import { type CollectiveModel, collectiveSeconds } from "../../collective-model.ts";
import { uniformDuplicationRate } from "./duplication-rate.ts";
import { checkNumChunks, checkSeconds } from "./layer-pass.ts";
import { layerTimeline } from "./layer-timeline.ts";

/**
 * Method of dispatching tokens to their experts.
 *
 * - `dense`: sends all slots.
 * - `ragged`: sends only rows that contain a token.
 * - `hierarchical`: sends only rows that contain a token, over one level of links after another.
 * - `duplicate-free`: sends each token once to each rank group that contains any of its experts.
 */
export type DispatchWay = "dense" | "ragged" | "hierarchical" | "duplicate-free";

/** Sizes of an expert layer that determine its network traffic. */
export interface DispatchedLayer {
  /** T: number of tokens per rank. */
  readonly numTokens: number;
  /** D: number of values per token. */
  readonly width: number;
  /** E: number of experts. */
  readonly numExperts: number;
  /** K: number of experts per token. */
  readonly expertsPerToken: number;
  /** C: number of slots per expert for the tokens of one rank. */
  readonly slots: number;
}

/**
 * Time models of all-to-alls among the ranks that share the experts, as functions of a rank's total send bytes,
 * including the bytes that stay on the rank.
 */
export interface DispatchLinks {
  /** P: number of ranks that share the experts. */
  readonly numRanks: number;
  /** Time model of a flat all-to-all among all ranks. */
  readonly flat: CollectiveModel;
  /** Levels of links between the ranks, outermost level first. The product of their sizes is P. Empty: no hierarchy. */
  readonly levels: readonly { readonly size: number; readonly model: CollectiveModel }[];
}

/** Computation seconds of a rank: forward plus backward. */
export interface LayerComputing {
  /**
   * Seconds that the experts need for R rows, the rows that one rank sends. While the experts process one chunk, other
   * chunks can be sent.
   */
  readonly expertSeconds: number;
  /** Extra seconds of expert computation per chunk. */
  readonly chunkSeconds: number;
  /** Seconds of the gate and of all computation that waits for the gate. Nothing is sent during this time. */
  readonly otherSeconds: number;
  /** Extra work if the backward pass has a different number of chunks than the forward pass. Default: no extra work. */
  readonly separateBackward?: SeparateBackward | undefined;
}

/** Extra cost of a backward pass with a different number of chunks than the forward pass. */
export interface SeparateBackward {
  /** Fraction of the experts' forward work that is recomputed: all products except the last product. */
  readonly recomputedShare: number;
  /** Seconds to copy the received rows of all slots into chunks of the size that the backward pass uses. */
  readonly copySeconds: number;
}

/** A dispatch method, with the chunk counts of its forward and backward pass. */
export interface DispatchChoice {
  readonly way: DispatchWay;
  readonly numChunks: number;
  /**
   * Number of chunks of the backward pass. A value other than `numChunks` is valid only for `dense`, because only slots
   * can be divided differently. Default: `numChunks`.
   */
  readonly backwardChunks?: number | undefined;
}

/**
 * Returns the number of chunks of the backward pass.
 *
 * @example
 * ```ts
 * console.log(backwardChunksOf({ way: "ragged", numChunks: 4 })); // 4
 * ```
 */
export const backwardChunksOf = ({ numChunks, backwardChunks = numChunks }: DispatchChoice): number => backwardChunks;

/** Traffic over one level of links: total bytes of all chunks in each direction. */
interface LevelTraffic {
  readonly model: CollectiveModel;
  readonly thereBytes: number;
  readonly backBytes: number;
}

const numberBytes = 4;

/**
 * Returns R, the number of rows that a rank sends: its token choices that get a slot if all experts are chosen equally
 * often.
 */
const rowsOf = ({ numTokens, expertsPerToken, numExperts, slots }: DispatchedLayer): number =>
  Math.min(numTokens * expertsPerToken, numExperts * slots);

const checkLayer = (layer: DispatchedLayer, { numRanks, levels }: DispatchLinks): void => {
  for (const [name, value] of Object.entries({ ...layer, numRanks }))
    if (!(Number.isSafeInteger(value) && value >= 1))
      throw new ArgumentError(
        `a layer of experts has ${name} ${value}, but needs a whole number from 1; correct ${name}`,
      );
  const product = levels.reduce((all, { size }) => all * size, 1);
  if (levels.length > 0 && product !== numRanks)
    throw new ArgumentError(
      `the levels have ${levels.map(({ size }) => size).join(" × ")} = ${product} ranks, but numRanks is ${numRanks}; use sizes with that product`,
    );
};

/** Returns the traffic of each level, in the order in which tokens pass the levels. */
const trafficOf = (
  way: DispatchWay,
  layer: DispatchedLayer,
  { numRanks, flat, levels }: DispatchLinks,
): readonly LevelTraffic[] => {
  const { width, numExperts, expertsPerToken, slots } = layer;
  const rows = rowsOf(layer);
  const traffic = (model: CollectiveModel, copies: number, extra = 0): LevelTraffic => ({
    model,
    thereBytes: copies * (width + extra) * numberBytes,
    backBytes: copies * width * numberBytes,
  });
  const inOrder = levels.length > 0 ? levels : [{ size: numRanks, model: flat }];
  switch (way) {
    case "dense":
      return [traffic(flat, numExperts * slots)];
    case "ragged":
      return [traffic(flat, rows)];
    case "hierarchical":
      return inOrder.toReversed().map(({ model }) => traffic(model, rows, 1));
    case "duplicate-free": {
      let numGroups = 1;
      return inOrder.map(({ size, model }) => {
        numGroups *= size;
        const copies = rows * (1 - uniformDuplicationRate({ numExperts, expertsPerToken }, numGroups));
        return traffic(model, copies, 2 * expertsPerToken);
      });
    }
  }
};

/**
 * Number of collectives per level and chunk, on the way to the experts (`there`) and on the way back (`back`). Methods
 * other than `dense` send row counts in separate collectives before the rows.
 */
interface StartUps {
  readonly there: number;
  readonly back: number;
  /** Number of collectives that exchange row counts over all ranks, before the first level. */
  readonly counts: number;
}

const startUpsOf = (way: DispatchWay, pass: "forward" | "backward"): StartUps => {
  if (way === "dense") return { there: 1, back: 1, counts: 0 };
  if (pass === "backward") return { there: 2, back: 2, counts: 0 };
  // Copies that are sent over levels also carry their expert indices, in addition to the counts.
  return { there: way === "ragged" ? 2 : 4, back: 2, counts: 1 };
};

/**
 * Computes the seconds to send one chunk over a level in one direction. One collective sends all bytes; the other
 * `numStartUps` − 1 collectives are almost empty.
 */
const levelSeconds = (model: CollectiveModel, bytes: number, numStartUps: number): number =>
  collectiveSeconds(model, bytes) + (numStartUps - 1) * collectiveSeconds(model, 0);

/**
 * Predicts the seconds of an expert layer, forward plus backward, for a dispatch method and a number of chunks. All
 * experts are assumed to be chosen equally often. Each pass is a `layerTimeline` with three streams: the first level of
 * dispatch and last level of return, the levels in between, and the experts. Backward computes twice as long as
 * forward. If the backward pass has a different number of chunks, rows are copied first, and its experts repeat
 * `recomputedShare` of the forward work.
 *
 * Values that a rank sends per level and direction, in all chunks together:
 *
 *     dense            E·C·D
 *     ragged           R·D
 *     hierarchical     R·(D + 1) to the experts, R·D back, over each level
 *     duplicate-free   p·(D + 2·K) to the experts, p·D back, p = R·(1 − duplication rate in U groups), over each level
 *
 * Each chunk has one start-up per collective, including the exchanges of row counts.
 *
 * Cost: O(chunks + levels).
 *
 * @throws ArgumentError if a size is not a positive integer, the product of the levels is not the number of ranks, the
 * method does not support the backward chunks, or a time is impossible.
 *
 * @example
 * ```ts
 * const model = { startupSeconds: 1e-5, secondsPerByte: 1e-9 };
 * const layer = { numTokens: 1024, width: 512, numExperts: 8, expertsPerToken: 2, slots: 320 };
 * const computing = { expertSeconds: 1e-3, chunkSeconds: 0, otherSeconds: 0 };
 * const links = { numRanks: 4, flat: model, levels: [] };
 * console.log(dispatchSeconds({ way: "ragged", numChunks: 1 }, layer, links, computing) > 1e-3); // true
 * ```
 * Source: levels as in HierMoE, arXiv 2508.09591; streams as in FSMoE, ASPLOS 2025. The numbers of start-ups and the
 * division of the computation are our own: see `docs/algorithms.md`.
 */
export const dispatchSeconds = (
  choice: DispatchChoice,
  layer: DispatchedLayer,
  links: DispatchLinks,
  { expertSeconds, chunkSeconds, otherSeconds, separateBackward = noExtraWork }: LayerComputing,
): number => {
  const { way, numChunks } = choice;
  const backwardChunks = backwardChunksOf(choice);
  const hasOwnChunks = backwardChunks !== numChunks;
  checkLayer(layer, links);
  checkNumChunks(numChunks);
  checkNumChunks(backwardChunks);
  if (hasOwnChunks && way !== "dense")
    throw new ArgumentError(
      `${way} has ${numChunks} chunks forward and ${backwardChunks} backward, but its rows would have to travel again for other chunks; use equal numbers, or dense`,
    );
  const seconds = {
    experts: expertSeconds,
    "a chunk": chunkSeconds,
    gate: otherSeconds,
    copying: separateBackward.copySeconds,
  };
  for (const [name, each] of Object.entries(seconds)) checkSeconds(name, each);
  const levels = trafficOf(way, layer, links);
  const { slots, numExperts } = layer;
  // Empty slots take the same time as occupied slots.
  const work = way === "dense" ? (expertSeconds * numExperts * slots) / rowsOf(layer) : expertSeconds;
  const passSeconds = (pass: "forward" | "backward", inChunks: number, share: number): number => {
    const startUps = startUpsOf(way, pass);
    const there = levels.map(({ model, thereBytes }) => levelSeconds(model, thereBytes / inChunks, startUps.there));
    const back = levels.map(({ model, backBytes }) => levelSeconds(model, backBytes / inChunks, startUps.back));
    const counts = startUps.counts * collectiveSeconds(links.flat, 0);
    const sum = (seconds: readonly number[]): number => seconds.reduce((all, one) => all + one, 0);
    const chunk = {
      allToAll: (counts + there[0]! + back[0]!) / 2,
      allGather: sum(there.slice(1)),
      reduceScatter: sum(back.slice(1)),
      experts: share * (chunkSeconds + work / inChunks),
    };
    return layerTimeline(chunk, { numChunks: inChunks }).makespanSeconds;
  };
  const backwardShare = hasOwnChunks ? (2 + separateBackward.recomputedShare) / 3 : 2 / 3;
  const copySeconds = hasOwnChunks ? separateBackward.copySeconds : 0;
  return (
    otherSeconds +
    passSeconds("forward", numChunks, 1 / 3) +
    (copySeconds + passSeconds("backward", backwardChunks, backwardShare))
  );
};

const noExtraWork: SeparateBackward = { recomputedShare: 0, copySeconds: 0 };

/** A dispatch choice with its predicted seconds. */
export interface PredictedDispatch extends DispatchChoice {
  readonly seconds: number;
}

/**
 * Predicts the seconds of all dispatch choices. The result is ordered by seconds, fastest first; equal predictions are
 * ordered by number of chunks, then by input order.
 *
 * @throws ArgumentError under the conditions of `dispatchSeconds`.
 * @example
 * ```ts
 * const model = { startupSeconds: 1e-5, secondsPerByte: 1e-9 };
 * const layer = { numTokens: 1024, width: 512, numExperts: 8, expertsPerToken: 2, slots: 320 };
 * const links = { numRanks: 4, flat: model, levels: [] };
 * const computing = { expertSeconds: 1e-3, chunkSeconds: 1e-5, otherSeconds: 0 };
 * const [best] = rankDispatches([1, 2, 4].map((numChunks) => ({ way: "ragged", numChunks })), layer, links, computing);
 * console.log(best!.numChunks > 1); // true
 * ```
 */
export const rankDispatches = (
  choices: readonly DispatchChoice[],
  layer: DispatchedLayer,
  links: DispatchLinks,
  computing: LayerComputing,
): readonly PredictedDispatch[] =>
  choices
    .map((choice) => ({ ...choice, seconds: dispatchSeconds(choice, layer, links, computing) }))
    .toSorted((a, b) => a.seconds - b.seconds || a.numChunks - b.numChunks);
