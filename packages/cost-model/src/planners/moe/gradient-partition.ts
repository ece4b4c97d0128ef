import { ArgumentError } from "@skein/tensor-core";
import { type CollectiveModel, collectiveSeconds } from "../../collective-model.ts";
import { checkSeconds, type MoeLayerPass } from "./layer-pass.ts";
import { fastest, type PipelineChoices, type PipelinePlan, pipelineCandidates } from "./pipeline-degree.ts";

/** The backward pass of a transformer layer: its experts first, then its dense part. */
export interface GradientLayer {
  readonly experts: MoeLayerPass;
  /** Of the dense part, during which nothing else goes between nodes. */
  readonly denseSeconds: number;
  /** What is all-reduced of this layer's gradients; there when its backward pass ends. Whole bytes. */
  readonly gradientBytes: number;
}

/** What one layer's backward pass carries of the gradients of layers before it. */
export interface LayerGradients {
  /** All-reduced between dispatch and combine. */
  readonly besideExpertsBytes: number;
  /** All-reduced during the dense part. */
  readonly besideDenseBytes: number;
  /** Of the experts, with these gradients between. */
  readonly pipeline: PipelinePlan;
  readonly denseSeconds: number;
}

export interface GradientPartition {
  /** In the order of the backward pass. */
  readonly layers: readonly LayerGradients[];
  /** What is left when all layers are through. */
  readonly afterBytes: number;
  /** Of the whole backward pass, up to the end of the last all-reduce. */
  readonly seconds: number;
}

export interface GradientPartitionOptions extends PipelineChoices {
  /** Into how many parts the second step cuts what the first leaves. Default: 64. */
  readonly numParts?: number | undefined;
}

/** Where gradients may be all-reduced, in the order of the backward pass: two for each layer. */
interface Place {
  /** What is there to send when it begins: gradients of all layers before. */
  readonly readyBytes: number;
  /** What the largest all-reduce takes that is not seen at all. */
  readonly idleSeconds: number;
  /** With an all-reduce of so long. */
  readonly secondsWith: (gradientSeconds: number) => number;
}

/** The most whole bytes, up to `most`, that an all-reduce carries in a time; 0 where not even its start-up fits. */
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
 * First step: give each place in turn what hides behind it. What could go here can go later as well, but idle time that
 * has passed is lost, so the earliest place first hides the most bytes of all.
 */
const fillIdle = (places: readonly Place[], allReduce: CollectiveModel): readonly number[] => {
  let sent = 0;
  return places.map(({ readyBytes, idleSeconds }) => {
    const bytes = bytesWithin(idleSeconds, readyBytes - sent, allReduce);
    sent += bytes;
    return bytes;
  });
};

/**
 * Second step: spread the rest over the places and the end, exactly in multiples of a part. With E(0) = 0 and u parts
 * given up to a place:
 *
 *     E(u) after a place = min over v ≤ u of E(v) before it + t_place(first + part v … u)
 *
 * A place that has few gradients to send ends every u above them, so what it gets first is not taken from it before.
 */
const spreadRest = (
  places: readonly Place[],
  first: readonly number[],
  restBytes: number,
  numParts: number,
  seconds: (bytes: number) => number,
): readonly number[] => {
  const upTo = (part: number): number => Math.floor((restBytes * part) / numParts);
  let sentFirst = 0;
  let ends: readonly number[] = [0];
  const tookBefore: number[][] = [];
  for (const [place, { readyBytes, secondsWith }] of places.entries()) {
    const next: number[] = [];
    const before: number[] = [];
    sentFirst += first[place]!;
    for (let u = 0; u <= numParts && sentFirst + upTo(u) <= readyBytes; u++) {
      next[u] = Infinity;
      // From the fewest parts for this place to the most, so that of equal plans the rest stays together.
      for (let v = Math.min(u, ends.length - 1); v >= 0; v--) {
        const end = ends[v]! + secondsWith(seconds(first[place]! + upTo(u) - upTo(v)));
        if (end < next[u]!) [next[u], before[u]] = [end, v];
      }
    }
    ends = next;
    tookBefore.push(before);
  }
  let parts = 0;
  let best = Infinity;
  for (const [u, end] of ends.entries())
    if (end + seconds(restBytes - upTo(u)) < best) [best, parts] = [end + seconds(restBytes - upTo(u)), u];
  const more = places.map(() => 0);
  for (let place = places.length - 1; place >= 0; place--) {
    const before = tookBefore[place]![parts]!;
    more[place] = upTo(parts) - upTo(before);
    parts = before;
  }
  return more;
};

/**
 * Decide which layer's backward pass carries how much of the gradients of layers before it. An all-reduce of n bytes
 * between dispatch and combine makes a layer as long as its best pipeline then is, one beside the dense part max(dense
 * part, t(n)), and what is left follows at the end:
 *
 *     minimise  Σ t_experts(t_ar(n_i)) + Σ max(dense_i, t_ar(m_i)) + t_ar(after)
 *
 * First each place gets what it hides, the earliest first. The rest is spread by dynamic programming over `numParts`
 * equal parts. The first step loses nothing, since fewer gradients never make a place longer: any plan can be changed
 * into one that fills idle time first. So with as many parts as bytes no plan ends earlier; with fewer parts, none of
 * whole parts does. All bytes are given out.
 *
 * For a fixed number of chunks a second of gradients that nothing hides costs a second in every place. What the second
 * step gains are start-ups: of chunks, since a layer with many gradients takes fewer, and of all-reduces, since one
 * message does for two.
 *
 * Cost: O(layers · (degrees · numParts² + simulations of all choices)); 48 layers take a few hundredths of a second.
 *
 * @param layers in the order of the backward pass, last layer of the model first.
 * @param allReduce what an all-reduce of so many bytes takes; not less for more bytes.
 * @throws ArgumentError for bytes that are not whole, a number of parts below 1, or impossible figures.
 *
 * Source: the two steps of FSMoE, ASPLOS 2025; their second step is a random search. They count one start-up for both
 * places of a layer, though a combine stands between them.
 */
export const planGradientPartition = (
  layers: readonly GradientLayer[],
  allReduce: CollectiveModel,
  options: GradientPartitionOptions = {},
): GradientPartition => {
  const { numParts = 64, ...choices } = options;
  if (!(Number.isSafeInteger(numParts) && numParts >= 1))
    throw new ArgumentError(`a gradient partition of ${numParts} parts was asked for; use a whole number from 1`);
  let readyBytes = 0;
  const places: Place[] = [];
  const candidates = layers.map(({ experts, denseSeconds, gradientBytes }, layer) => {
    checkSeconds("its dense part", denseSeconds);
    if (!(Number.isSafeInteger(gradientBytes) && gradientBytes >= 0))
      throw new ArgumentError(
        `layer ${layer} has gradients of ${gradientBytes} bytes; give a whole number from 0, of all ranks alike`,
      );
    const ofLayer = pipelineCandidates(experts, choices);
    const secondsWith = (gradientSeconds: number): number => fastest(ofLayer, gradientSeconds).seconds;
    const without = secondsWith(0);
    const idleSeconds = Math.max(
      ...ofLayer
        .filter(({ seconds }) => seconds === without)
        .map(({ seconds, fixedSeconds }) => seconds - fixedSeconds),
    );
    places.push(
      { readyBytes, idleSeconds, secondsWith },
      { readyBytes, idleSeconds: denseSeconds, secondsWith: (seconds) => Math.max(denseSeconds, seconds) },
    );
    readyBytes += gradientBytes;
    return ofLayer;
  });
  const seconds = (bytes: number): number => (bytes === 0 ? 0 : collectiveSeconds(allReduce, bytes));
  const first = fillIdle(places, allReduce);
  const restBytes = first.reduce((rest, bytes) => rest - bytes, readyBytes);
  const more = spreadRest(places, first, restBytes, numParts, seconds);
  const bytes = first.map((one, place) => one + more[place]!);
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
