// Symbols: T tokens of a rank, K experts per token, E experts, C slots of an expert for tokens of one rank, D numbers
// per token, P ranks that share the experts, U groups of ranks at a level, R rows that a rank sends.
import { ArgumentError } from "@skein/tensor-core";
import { type CollectiveModel, collectiveSeconds } from "../../collective-model.ts";
import { uniformDuplicationRate } from "./duplication-rate.ts";
import { checkNumChunks, checkSeconds } from "./layer-pass.ts";
import { layerTimeline } from "./layer-timeline.ts";

/**
 * Dispatch method of tokens to their experts. `dense`: all slots; `ragged`: only rows with a token; `hierarchical`:
 * such rows, over one level of links after another; `duplicate-free`: each token once to each group that needs it.
 */
export type DispatchWay = "dense" | "ragged" | "hierarchical" | "duplicate-free";

/** Sizes of a layer of experts that determine its traffic. */
export interface DispatchedLayer {
  /** T: tokens of a rank. */
  readonly numTokens: number;
  /** D: numbers per token. */
  readonly width: number;
  /** E: experts. */
  readonly numExperts: number;
  /** K: experts per token. */
  readonly expertsPerToken: number;
  /** C: slots of an expert for tokens of one rank. */
  readonly slots: number;
}

/**
 * All-to-alls of the ranks that share the experts. The models take the bytes that a rank has for all ranks, itself
 * included.
 */
export interface DispatchLinks {
  /** P: ranks that share the experts. */
  readonly numRanks: number;
  /** An all-to-all of all ranks at once. */
  readonly flat: CollectiveModel;
  /** Levels of links between the ranks, the outermost first; the product of their sizes is P. Empty: no hierarchy. */
  readonly levels: readonly { readonly size: number; readonly model: CollectiveModel }[];
}

/** Seconds of computing of a rank, forward and backward together. */
export interface LayerComputing {
  /** Seconds of the experts for R rows; other chunks travel while a chunk is computed. */
  readonly expertSeconds: number;
  /** Extra seconds per chunk. */
  readonly chunkSeconds: number;
  /** Seconds of the gate and of everything that waits for the gate, while nothing travels. */
  readonly otherSeconds: number;
  /** Extra work of the backward pass if its chunks differ from forward's. Default: no extra work. */
  readonly apart?: SeparateBackward | undefined;
}

/** Cost of a backward pass with its own chunks. */
export interface SeparateBackward {
  /** Recomputed share of the experts' forward work: all except the last product. */
  readonly recomputedShare: number;
  /** Seconds to copy the received rows, of all slots, into other chunks. */
  readonly copySeconds: number;
}

/** A dispatch method with a number of chunks. */
export interface DispatchChoice {
  readonly way: DispatchWay;
  readonly numChunks: number;
  /**
   * Number of chunks of the backward pass. Only slots can be chunked differently, so other values are valid only for
   * `dense`. Default: `numChunks`.
   */
  readonly backwardChunks?: number | undefined;
}

/** Number of chunks of the backward pass. */
export const backwardChunksOf = ({ numChunks, backwardChunks = numChunks }: DispatchChoice): number => backwardChunks;

/** Traffic of one level, one collective after another: bytes in all chunks together. */
interface LevelTraffic {
  readonly model: CollectiveModel;
  readonly thereBytes: number;
  readonly backBytes: number;
}

const numberBytes = 4;

/** R: number of choices that get a slot if all experts are chosen equally often. */
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

/** Traffic of each level, in the order in which tokens travel. */
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

/** Number of collectives per level; counts of rows are sent ahead of rows. */
interface StartUps {
  readonly there: number;
  readonly back: number;
  /** Exchanges of counts over all ranks, before the first level. */
  readonly counts: number;
}

const startUpsOf = (way: DispatchWay, pass: "forward" | "backward"): StartUps => {
  if (way === "dense") return { there: 1, back: 1, counts: 0 };
  if (pass === "backward") return { there: 2, back: 2, counts: 0 };
  // Copies over levels also carry their experts, next to the counts.
  return { there: way === "ragged" ? 2 : 4, back: 2, counts: 1 };
};

/** Seconds of one chunk over a level in one direction: one collective of its bytes, the others almost empty. */
const levelSeconds = (model: CollectiveModel, bytes: number, numStartUps: number): number =>
  collectiveSeconds(model, bytes) + (numStartUps - 1) * collectiveSeconds(model, 0);

/**
 * Predict the seconds of a layer of experts, forward and backward, with a dispatch method and a number of chunks, if
 * all experts are chosen equally often. Each pass is a `layerTimeline`: the first level of the dispatch and the last
 * level of the return are one stream, the levels in between another, the experts a third; backward computes twice as
 * long as forward. If backward has other chunks, its experts also repeat `recomputedShare` of forward's work, and rows are
 * copied first.
 *
 * A rank sends per level, in all chunks together and in one direction
 *
 *     dense            E·C·D numbers
 *     ragged           R·D
 *     hierarchical     R·(D + 1) to the experts, R·D back, over each level
 *     duplicate-free   p·(D + 2·K) to the experts, p·D back, p = R·(1 − duplication rate in U groups), over each level
 *
 * and each chunk has one start-up per collective, counts of rows included.
 *
 * Cost: O(chunks + levels).
 *
 * @throws ArgumentError for sizes that are not whole numbers from 1, levels whose product is not the number of ranks,
 * backward chunks that a method cannot have, or impossible times.
 *
 * Source: levels as in HierMoE, arXiv 2508.09591; streams as in FSMoE, ASPLOS 2025. Start-ups and the split of
 * computing are ours: see `docs/algorithms.md`.
 */
export const dispatchSeconds = (
  choice: DispatchChoice,
  layer: DispatchedLayer,
  links: DispatchLinks,
  { expertSeconds, chunkSeconds, otherSeconds, apart = noExtraWork }: LayerComputing,
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
  const seconds = { experts: expertSeconds, "a chunk": chunkSeconds, gate: otherSeconds, copying: apart.copySeconds };
  for (const [name, each] of Object.entries(seconds)) checkSeconds(name, each);
  const levels = trafficOf(way, layer, links);
  const { slots, numExperts } = layer;
  // Empty slots are computed like full slots.
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
  const backwardShare = hasOwnChunks ? (2 + apart.recomputedShare) / 3 : 2 / 3;
  const copySeconds = hasOwnChunks ? apart.copySeconds : 0;
  return (
    otherSeconds +
    passSeconds("forward", numChunks, 1 / 3) +
    (copySeconds + passSeconds("backward", backwardChunks, backwardShare))
  );
};

const noExtraWork: SeparateBackward = { recomputedShare: 0, copySeconds: 0 };

/** A choice with its predicted seconds. */
export interface PredictedDispatch extends DispatchChoice {
  readonly seconds: number;
}

/**
 * Predict all choices, fastest first; equal predictions are ordered by number of chunks, then by input order.
 *
 * @throws ArgumentError see `dispatchSeconds`.
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
