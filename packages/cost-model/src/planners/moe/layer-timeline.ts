import { type ChunkSeconds, checkNumChunks, checkSeconds } from "./layer-pass.ts";

/**
 * Order of collectives within a node. "gathers-first": all all-gathers, then all reduce-scatters. "alternating": two
 * all-gathers, then reduce-scatters and all-gathers alternate, so that all-gathers stay one chunk ahead.
 */
export type IntraNodeOrder = "gathers-first" | "alternating";

/** Schedule of an expert layer's pipeline. */
export interface LayerSchedule {
  /** r, number of chunks: the degree of the pipeline. */
  readonly numChunks: number;
  /** Seconds of a gradient all-reduce between the last dispatch and the first combine. Default: 0, no all-reduce. */
  readonly gradientSeconds?: number | undefined;
  /** Order of collectives within a node. Default: "gathers-first". */
  readonly intraNodeOrder?: IntraNodeOrder | undefined;
}

/** Time span of one operation on one chunk. The gradient all-reduce has no chunk. */
export interface LayerSpan {
  readonly operation: "dispatch" | "all-gather" | "experts" | "reduce-scatter" | "combine" | "gradients";
  readonly chunk: number | undefined;
  readonly startSeconds: number;
  readonly endSeconds: number;
}

/** Timeline of one pass over an expert layer. Time 0 is when the tokens have been routed. */
export interface LayerTimeline {
  /** Operations by stream, in the order in which they start. */
  readonly streams: Readonly<Record<"interNode" | "intraNode" | "compute", readonly LayerSpan[]>>;
  readonly makespanSeconds: number;
}

type IntraNodeStep = readonly [operation: "all-gather" | "reduce-scatter", chunk: number];

const intraNodeSteps = (numChunks: number, order: IntraNodeOrder): readonly IntraNodeStep[] => {
  const chunks = Array.from({ length: numChunks }, (_, chunk) => chunk);
  const gathers = chunks.map((chunk): IntraNodeStep => ["all-gather", chunk]);
  const scatters = chunks.map((chunk): IntraNodeStep => ["reduce-scatter", chunk]);
  if (order === "gathers-first") return [...gathers, ...scatters];
  return [gathers[0]!, ...chunks.flatMap((chunk) => [...gathers.slice(chunk + 1, chunk + 2), scatters[chunk]!])];
};

/**
 * Simulates one pass over an expert layer in r chunks on three streams. Each stream runs one operation at a time in a
 * fixed order, and every operation starts as soon as its stream is free and its input is ready:
 *
 *     inter-node   dispatch 1 … r, all-reduce of gradients, combine 1 … r
 *     intra-node   all-gather 1 … r, reduce-scatter 1 … r; or alternating
 *     compute      experts 1 … r
 *
 * Each chunk passes through dispatch, all-gather, experts, reduce-scatter, combine. The alternating order starts the
 * first combine earlier, but delays later experts. So it depends on the times which order is better.
 *
 * The gradient all-reduce begins at the end of the last dispatch, and only combines follow it. If it takes t seconds,
 * makespan = max(makespan without it, 2r · t_a2a + t) in both orders.
 *
 * Cost: O(r).
 *
 * @throws ArgumentError if the number of chunks is not a positive integer, or a time is negative or infinite.
 *
 * @example
 * ```ts
 * const chunk = { allToAll: 1, allGather: 0.5, reduceScatter: 0.5, experts: 2 };
 * console.log(layerTimeline(chunk, { numChunks: 2 }).makespanSeconds); // 7
 * ```
 * Source: the schedule of FSMoE, ASPLOS 2025; the alternating order is ours.
 */
export const layerTimeline = (chunk: ChunkSeconds, schedule: LayerSchedule): LayerTimeline => {
  const { numChunks, gradientSeconds = 0, intraNodeOrder = "gathers-first" } = schedule;
  checkNumChunks(numChunks);
  checkSeconds("gradients", gradientSeconds);
  for (const [name, seconds] of Object.entries(chunk)) checkSeconds(name, seconds);

  const streams = { interNode: [] as LayerSpan[], intraNode: [] as LayerSpan[], compute: [] as LayerSpan[] };
  /**
   * Appends an operation to its stream.
   * @returns the end of the operation in seconds.
   */
  const run = (
    stream: LayerSpan[],
    operation: LayerSpan["operation"],
    of: number | undefined,
    readySeconds: number,
    seconds: number,
  ): number => {
    const startSeconds = Math.max(stream.at(-1)?.endSeconds ?? 0, readySeconds);
    const endSeconds = startSeconds + seconds;
    stream.push({ operation, chunk: of, startSeconds, endSeconds });
    return endSeconds;
  };
  const { interNode, intraNode, compute } = streams;
  const dispatched = Array.from({ length: numChunks }, (_, i) => run(interNode, "dispatch", i, 0, chunk.allToAll));
  if (gradientSeconds > 0) run(interNode, "gradients", undefined, 0, gradientSeconds);
  const computed: number[] = [];
  for (const [operation, i] of intraNodeSteps(numChunks, intraNodeOrder))
    if (operation === "all-gather") {
      const gathered = run(intraNode, operation, i, dispatched[i]!, chunk.allGather);
      computed.push(run(compute, "experts", i, gathered, chunk.experts));
    } else {
      const scattered = run(intraNode, operation, i, computed[i]!, chunk.reduceScatter);
      run(interNode, "combine", i, scattered, chunk.allToAll);
    }
  return { streams, makespanSeconds: interNode.at(-1)!.endSeconds };
};
