import { median } from "@skein/cost-model";
import type { BackwardSegment, GradientProfile, LinearCollectiveModel } from "@skein/cost-model";
import { InvariantError, type Span } from "@skein/tensor-core";
import { modelScope } from "@skein/tensor-core/backend";

/** Times of a layer of experts in a backward pass, from the start of the pass. */
export interface ExpertLayerTimes {
  /** Start of the layer's first exchange of cotangents. */
  readonly beginSeconds: number;
  /** End of the layer's last exchange. */
  readonly endSeconds: number;
  /** Seconds of kernels between start and end. */
  readonly computeSeconds: number;
  /** Bytes by which cotangents are sent to experts, equal to the bytes of the way back: of all chunks, one way. */
  readonly exchangedBytes: number;
  readonly numChunks: number;
}

/** Scopes of a layer's exchanges, by the names of the stages. */
const exchange = /^(?<layer>.*)(?<stage>dispatch|combine)$/;

/** Layer and stage of an exchange in a backward pass. Absent: another span. */
const exchangeOf = ({ track, args }: Span): { readonly layer: string; readonly stage: string } | undefined => {
  if (track !== "collectives" || args?.scope === undefined) return undefined;
  const model = modelScope(args.scope);
  const { layer, stage } = (model === args.scope ? undefined : exchange.exec(model)?.groups) ?? {};
  return layer === undefined || stage === undefined ? undefined : { layer, stage };
};

/**
 * Layers of experts in the spans of one step, in the order of the backward pass.
 *
 * @param begin start of the backward pass.
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
    // The backward pass reverses the stages, so "combine" comes first. With several levels, each chunk is exchanged
    // along each axis.
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

/** Median over several steps, per layer. */
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

/** Layers as numbers, so that ranks can agree on them. */
export const layerNumbers = (layers: readonly ExpertLayerTimes[]): number[] =>
  layers.flatMap((layer) => figures.map((figure) => layer[figure]));

export const layersFrom = (numbers: readonly number[]): readonly ExpertLayerTimes[] =>
  Array.from({ length: numbers.length / figures.length }, (_, i) =>
    layerFrom(numbers.slice(i * figures.length, (i + 1) * figures.length)),
  );

/**
 * Describe a backward pass as layers of experts and the computation between them.
 *
 * @param allToAll time model of an exchange by its bytes.
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
