import type { ChunkSeconds } from "./layer-pass.ts";
import type { LayerSchedule } from "./layer-timeline.ts";

/** What a pipelined layer of experts waits for most: cases 1 to 4 of the paper, in this order. */
export type PipelineBound = "inter-node" | "compute" | "all-to-all" | "intra-node";

/** Q1 to Q7 of the paper. */
export type PipelinePredicates = Readonly<Record<"q1" | "q2" | "q3" | "q4" | "q5" | "q6" | "q7", boolean>>;

/** Compare the times of a schedule as Q1 to Q7 do; Q5 and Q7 are the same sum in another order. */
export const pipelinePredicates = (
  { allToAll, allGather, reduceScatter, experts }: ChunkSeconds,
  { numChunks: r, gradientSeconds = 0 }: LayerSchedule,
): PipelinePredicates => {
  // What goes between nodes behind the first dispatch and before the last combine.
  const between = 2 * (r - 1) * allToAll;
  const within = allGather + reduceScatter;
  return {
    q1: allToAll > allGather,
    q2: r * experts > between,
    q3: r * experts > (r - 1) * within,
    q4: gradientSeconds > within,
    q5: gradientSeconds > r * experts - between + within,
    q6: gradientSeconds > r * within - between,
    q7: gradientSeconds > within + r * experts - between,
  };
};

/** Decide by the predicates: exactly one of the four cases holds, whatever they are. */
export const pipelineBound = ({ q1, q2, q3, q4, q5, q6, q7 }: PipelinePredicates): PipelineBound => {
  if (q1) {
    if (q2) return q5 ? "inter-node" : "compute";
    return q4 ? "inter-node" : "all-to-all";
  }
  if (q3) return q7 ? "inter-node" : "compute";
  return q6 ? "inter-node" : "intra-node";
};

/**
 * Tell which of the four published cases a pipelined layer is in, and its time by the formula of that case:
 *
 *     inter-node   2r · t_a2a + t_gar                  compute      2 · t_a2a + t_ag + t_rs + r · t_exp
 *     all-to-all   2r · t_a2a + t_ag + t_rs            intra-node   2 · t_a2a + r · t_ag + r · t_rs
 *
 * Where t_ag = t_rs it is what `layerTimeline` gives with all gathers first. Where they differ it is a lower bound,
 * since Q1 looks at the all-gather alone: of eight chunks it may be an eighth of the time. So plans are made by
 * `layerTimeline`; this says in one word what limits a layer.
 *
 * @param chunk times of one chunk. @param schedule its order of collectives is not read: it is "gathers-first".
 *
 * Source: FSMoE, ASPLOS 2025.
 */
export const pipelineCase = (
  chunk: ChunkSeconds,
  schedule: LayerSchedule,
): { readonly bound: PipelineBound; readonly seconds: number } => {
  const { numChunks: r, gradientSeconds = 0 } = schedule;
  const { allToAll, allGather, reduceScatter, experts } = chunk;
  const bound = pipelineBound(pipelinePredicates(chunk, schedule));
  const seconds = {
    "inter-node": 2 * r * allToAll + gradientSeconds,
    compute: 2 * allToAll + allGather + reduceScatter + r * experts,
    "all-to-all": 2 * r * allToAll + allGather + reduceScatter,
    "intra-node": 2 * allToAll + r * (allGather + reduceScatter),
  }[bound];
  return { bound, seconds };
};
