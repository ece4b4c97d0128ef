// Symbols: T tokens of a rank, K experts of each, E experts, C slots of an expert for tokens of one rank, D numbers of
// a token, P ranks that share the experts out, U groups that the ranks are in at a level, R rows that travel of a rank.
import { ArgumentError } from "@skein/tensor-core";
import { type CollectiveModel, collectiveSeconds } from "../../collective-model.ts";
import { uniformDuplicationRate } from "./duplication-rate.ts";
import { checkNumChunks, checkSeconds } from "./layer-pass.ts";
import { layerTimeline } from "./layer-timeline.ts";

/**
 * How tokens travel to their experts: all slots; rows that hold a token; the same over one level after the other; a
 * token once to each group that needs it.
 */
export type DispatchWay = "dense" | "ragged" | "hierarchical" | "duplicate-free";

/** What travels of a layer of experts. */
export interface DispatchedLayer {
  /** T */
  readonly numTokens: number;
  /** D */
  readonly width: number;
  /** E */
  readonly numExperts: number;
  /** K */
  readonly expertsPerToken: number;
  /** C */
  readonly slots: number;
}

/** All-to-alls of the ranks that share experts out; models take the bytes that a rank has for all, itself included. */
export interface DispatchLinks {
  /** P */
  readonly numRanks: number;
  /** Of all ranks at once. */
  readonly flat: CollectiveModel;
  /** Of each level that the ranks lie along, the outermost first; their sizes make up P. Empty: only all at once. */
  readonly levels: readonly { readonly size: number; readonly model: CollectiveModel }[];
}

/** What a rank computes, forward and backward together. */
export interface LayerComputing {
  /** By experts, of R rows: while one chunk is computed, others travel. */
  readonly expertSeconds: number;
  /** Added by each chunk. */
  readonly chunkSeconds: number;
  /** The gate and all that waits for it, during which nothing travels. */
  readonly otherSeconds: number;
  /** What backward does beside where its chunks are not forward's. Default: nothing. */
  readonly apart?: ApartComputing | undefined;
}

/** What chunks of its own cost a backward pass. */
export interface ApartComputing {
  /** Of what experts compute forward, the part that is computed again: all but the last product. */
  readonly againShare: number;
  /** To copy the rows that arrived, of all slots, into other chunks. */
  readonly copySeconds: number;
}

/** A way and a number of chunks. */
export interface DispatchChoice {
  readonly way: DispatchWay;
  readonly numChunks: number;
  /** Of the backward pass; only slots can be cut anew, so with `dense` alone another than `numChunks`, the default. */
  readonly backwardChunks?: number | undefined;
}

/** Chunks of the backward pass. */
export const backwardChunksOf = ({ numChunks, backwardChunks = numChunks }: DispatchChoice): number => backwardChunks;

/** One collective after the other: over an axis, with so many rows of so many numbers in all chunks together. */
interface Leg {
  readonly model: CollectiveModel;
  readonly thereBytes: number;
  readonly backBytes: number;
}

const numberBytes = 4;

/** R: choices that find a slot where all experts are chosen alike. */
const rowsOf = ({ numTokens, expertsPerToken, numExperts, slots }: DispatchedLayer): number =>
  Math.min(numTokens * expertsPerToken, numExperts * slots);

const checkLayer = (layer: DispatchedLayer, { numRanks, levels }: DispatchLinks): void => {
  for (const [name, value] of Object.entries({ ...layer, numRanks }))
    if (!(Number.isSafeInteger(value) && value >= 1))
      throw new ArgumentError(`a layer of experts has ${name} ${value}; use a whole number from 1`);
  const product = levels.reduce((all, { size }) => all * size, 1);
  if (levels.length > 0 && product !== numRanks)
    throw new ArgumentError(
      `levels of ${levels.map(({ size }) => size).join(" × ")} = ${product} ranks were given for ${numRanks}; use sizes whose product it is`,
    );
};

/** Which way tokens take, in the order in which they leave. */
const legsOf = (
  way: DispatchWay,
  layer: DispatchedLayer,
  { numRanks, flat, levels }: DispatchLinks,
): readonly Leg[] => {
  const { width, numExperts, expertsPerToken, slots } = layer;
  const rows = rowsOf(layer);
  const leg = (model: CollectiveModel, copies: number, extra = 0): Leg => ({
    model,
    thereBytes: copies * (width + extra) * numberBytes,
    backBytes: copies * width * numberBytes,
  });
  const inOrder = levels.length > 0 ? levels : [{ size: numRanks, model: flat }];
  switch (way) {
    case "dense":
      return [leg(flat, numExperts * slots)];
    case "ragged":
      return [leg(flat, rows)];
    case "hierarchical":
      return inOrder.toReversed().map(({ model }) => leg(model, rows, 1));
    case "duplicate-free": {
      let numGroups = 1;
      return inOrder.map(({ size, model }) => {
        numGroups *= size;
        const copies = rows * (1 - uniformDuplicationRate({ numExperts, expertsPerToken }, numGroups));
        return leg(model, copies, 2 * expertsPerToken);
      });
    }
  }
};

/** How many collectives a leg is: with rows, their counts go ahead. */
interface StartUps {
  readonly there: number;
  readonly back: number;
  /** Before the first: of all ranks at once. */
  readonly counts: number;
}

const startUpsOf = (way: DispatchWay, pass: "forward" | "backward"): StartUps => {
  if (way === "dense") return { there: 1, back: 1, counts: 0 };
  if (pass === "backward") return { there: 2, back: 2, counts: 0 };
  // Copies over levels say beside what they are for which rows they are.
  return { there: way === "ragged" ? 2 : 4, back: 2, counts: 1 };
};

/** One chunk over a leg, one way: one start-up of its own size, all others of next to nothing. */
const legSeconds = (model: CollectiveModel, bytes: number, numStartUps: number): number =>
  collectiveSeconds(model, bytes) + (numStartUps - 1) * collectiveSeconds(model, 0);

/**
 * Predict what a layer of experts takes, forward and backward, with tokens that travel in this way and in so many
 * chunks, where all experts are chosen alike. Each pass is `layerTimeline`: the first leg there and the last one back
 * are one stream, legs between them another, experts a third; backward computes twice as long as forward. Where it has
 * other chunks, its experts compute `againShare` of forward's work as well, and rows are copied before.
 *
 * A rank has, of each leg, in all chunks together and one way
 *
 *     dense            E·C·D numbers
 *     ragged           R·D
 *     hierarchical     R·(D + 1) there, R·D back, over each level
 *     duplicate-free   p·(D + 2·K) there, p·D back, p = R·(1 − duplication rate in U groups), over each level
 *
 * and of each chunk as many start-ups as there are collectives, counts of rows included.
 *
 * Cost: O(chunks + levels).
 *
 * @throws ArgumentError for sizes that are not whole numbers from 1, levels that do not make up the ranks, chunks of
 * backward that a way cannot have, or impossible times.
 *
 * Source: legs as in HierMoE, arXiv 2508.09591; streams as in FSMoE, ASPLOS 2025. Start-ups and the split of computing
 * are ours: see `docs/algorithms.md`.
 */
export const dispatchSeconds = (
  choice: DispatchChoice,
  layer: DispatchedLayer,
  links: DispatchLinks,
  { expertSeconds, chunkSeconds, otherSeconds, apart = nothingApart }: LayerComputing,
): number => {
  const { way, numChunks } = choice;
  const backwardChunks = backwardChunksOf(choice);
  const isApart = backwardChunks !== numChunks;
  checkLayer(layer, links);
  checkNumChunks(numChunks);
  checkNumChunks(backwardChunks);
  if (isApart && way !== "dense")
    throw new ArgumentError(
      `${numChunks} chunks forward and ${backwardChunks} backward were given for tokens that travel ${way}, whose rows would have to travel again; give the same, or the way dense`,
    );
  const seconds = { experts: expertSeconds, "a chunk": chunkSeconds, gate: otherSeconds, copying: apart.copySeconds };
  for (const [name, each] of Object.entries(seconds)) checkSeconds(name, each);
  const legs = legsOf(way, layer, links);
  const { slots, numExperts } = layer;
  // Empty slots are computed like full ones.
  const work = way === "dense" ? (expertSeconds * numExperts * slots) / rowsOf(layer) : expertSeconds;
  const passSeconds = (pass: "forward" | "backward", inChunks: number, share: number): number => {
    const startUps = startUpsOf(way, pass);
    const there = legs.map(({ model, thereBytes }) => legSeconds(model, thereBytes / inChunks, startUps.there));
    const back = legs.map(({ model, backBytes }) => legSeconds(model, backBytes / inChunks, startUps.back));
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
  const backwardShare = isApart ? (2 + apart.againShare) / 3 : 2 / 3;
  const copySeconds = isApart ? apart.copySeconds : 0;
  return (
    otherSeconds +
    passSeconds("forward", numChunks, 1 / 3) +
    (copySeconds + passSeconds("backward", backwardChunks, backwardShare))
  );
};

const nothingApart: ApartComputing = { againShare: 0, copySeconds: 0 };

/** A choice, and what it was predicted to take. */
export interface PredictedDispatch extends DispatchChoice {
  readonly seconds: number;
}

/**
 * Predict all choices, the fastest first; of equal ones that with fewer chunks, then the one that stands first.
 *
 * @throws ArgumentError as `dispatchSeconds`.
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
