import type { GradientProfile, LinearCollectiveModel } from "@skein/cost-model";
import type { BackwardSegment } from "@skein/cost-model/planners";
import { median } from "@skein/measuring";
import { InvariantError, type Span } from "@skein/tensor-core";
import { modelScope } from "@skein/tensor-core/backend";

/** Times of an expert layer in a backward pass. Times are relative to the start of the pass. */
export interface ExpertLayerTimes {
  /** Start of the layer's first all-to-all of cotangents. */
  readonly beginSeconds: number;
  /** End of the layer's last all-to-all. */
  readonly endSeconds: number;
  /** Kernel time between `beginSeconds` and `endSeconds`. */
  readonly computeSeconds: number;
  /** Bytes of cotangents sent to experts, over all chunks. The same number of bytes is sent back. */
  readonly exchangedBytes: number;
  readonly numChunks: number;
}

/** Matches the scope name of an all-to-all of an expert layer: name of the layer, then `dispatch` or `combine`. */
const exchange = /^(?<layer>.*)(?<stage>dispatch|combine)$/;

/**
 * Returns the layer and the stage (`dispatch` or `combine`) of an all-to-all in a backward pass. Undefined for any
 * other span.
 */
const exchangeOf = ({ track, args }: Span): { readonly layer: string; readonly stage: string } | undefined => {
  if (track !== "collectives" || args?.scope === undefined) return undefined;
  const model = modelScope(args.scope);
  const { layer, stage } = (model === args.scope ? undefined : exchange.exec(model)?.groups) ?? {};
  return layer === undefined || stage === undefined ? undefined : { layer, stage };
};

/**
 * Returns the expert layers found in the spans of one step, in the order of the backward pass.
 *
 * @param begin Start of the backward pass.
 */
export const expertLayersOf = (spans: readonly Span[], begin: number): readonly ExpertLayerTimes[] => {
  const exchanges = spans.flatMap((span) => {
    const found = exchangeOf(span);
    return found === undefined ? [] : [{ ...found, span }];
  });
  const layers = [...Map.groupBy(exchanges, ({ layer }) => layer).values()].map((own): ExpertLayerTimes => {
    const [first, last] = [
      Math.min(...own.map(({ span }) => span.startSeconds)),
      Math.max(...own.map(({ span }) => span.endSeconds)),
    ];
    // The backward pass runs the stages in reverse, so "combine" is first. With several levels, each chunk has one
    // all-to-all along each axis.
    const coming = own.filter(({ stage }) => stage === "combine").map(({ span }) => span.args);
    const numLevels = new Set(coming.map((args) => args?.axis)).size;
    return {
      beginSeconds: first - begin,
      endSeconds: last - begin,
      computeSeconds: spans
        .filter(({ track, startSeconds }) => track === "compute" && startSeconds >= first && startSeconds < last)
        .reduce((sum, { startSeconds, endSeconds }) => sum + endSeconds - startSeconds, 0),
      exchangedBytes: coming.reduce((sum, args) => sum + (args?.bytes ?? 0), 0) / Math.max(1, numLevels),
      numChunks: Math.max(1, Math.round(coming.length / Math.max(1, numLevels))),
    };
  });
  return layers.sort((a, b) => a.beginSeconds - b.beginSeconds);
};

const figures = ["beginSeconds", "endSeconds", "computeSeconds", "exchangedBytes", "numChunks"] as const;

/**
 * Returns the expert layers with their median times over several steps. @throws InvariantError if steps have different
 * numbers of layers.
 */
export const medianLayers = (steps: readonly (readonly ExpertLayerTimes[])[]): readonly ExpertLayerTimes[] => {
  const counts = new Set(steps.map(({ length }) => length));
  if (counts.size > 1)
    throw new InvariantError(`steps of one graph have ${[...counts].join(" and ")} layers of experts`);
  return (steps[0] ?? []).map((_, layer) =>
    layerFrom(figures.map((figure) => median(steps.map((layers) => layers[layer]![figure])))),
  );
};

const layerFrom = (numbers: readonly number[]): ExpertLayerTimes => {
  const [beginSeconds, endSeconds, computeSeconds, exchangedBytes, numChunks] = numbers as [
    number,
    number,
    number,
    number,
    number,
  ];
  return { beginSeconds, endSeconds, computeSeconds, exchangedBytes, numChunks };
};

/** Converts layers to a list of numbers, so that ranks can agree on the layers. */
export const layerNumbers = (layers: readonly ExpertLayerTimes[]): number[] =>
  layers.flatMap((layer) => figures.map((figure) => layer[figure]));

export const layersFrom = (numbers: readonly number[]): readonly ExpertLayerTimes[] =>
  Array.from({ length: numbers.length / figures.length }, (_, i) =>
    layerFrom(numbers.slice(i * figures.length, (i + 1) * figures.length)),
  );

/**
 * Divides a backward pass into segments: expert layers, and the computation between expert layers.
 *
 * @param allToAll Time model of an all-to-all: seconds by bytes.
 */
export const stretchesOf = (
  layers: readonly ExpertLayerTimes[],
  { tensors }: GradientProfile,
  allToAll: LinearCollectiveModel,
): readonly BackwardSegment[] => {
  let end = 0;
  const ready = tensors.map(({ backwardSeconds }) => (end += backwardSeconds));
  const numReady = (at: number): number => ready.filter((seconds) => seconds <= at).length;
  const none = { model: { startupSeconds: 0, secondsPerByte: 0 }, bytes: 0 };
  let at = 0;
  const stretches: BackwardSegment[] = [];
  const computeUntil = (until: number): void => {
    if (until <= at) return;
    stretches.push({ numReady: numReady(at), denseSeconds: until - at });
    at = until;
  };
  for (const { beginSeconds, endSeconds, computeSeconds, exchangedBytes, numChunks } of layers) {
    computeUntil(beginSeconds);
    stretches.push({
      numReady: numReady(at),
      numChunks,
      experts: {
        allToAll: { model: allToAll, bytes: exchangedBytes },
        allGather: none,
        reduceScatter: none,
        experts: { startupSeconds: 0, workSeconds: computeSeconds },
      },
    });
    at = Math.max(at, endSeconds);
  }
  computeUntil(end);
  return stretches;
};
