import type { ChunkSeconds } from "../planners/moe/layer-pass.ts";
import type { LayerSchedule } from "../planners/moe/layer-timeline.ts";

/** Bottleneck of a pipelined expert layer: cases 1 to 4 of the FSMoE paper, in this order. */
export type PipelineBound = "inter-node" | "compute" | "all-to-all" | "intra-node";

/** Truth values of the predicates Q1 to Q7 of the FSMoE paper. */
export type PipelinePredicates = Readonly<Record<"q1" | "q2" | "q3" | "q4" | "q5" | "q6" | "q7", boolean>>;

/** Evaluates the predicates Q1 to Q7 for the times of a schedule. Q5 and Q7 are the same sum, in a different order. */
export const pipelinePredicates = (
  { allToAll, allGather, reduceScatter, experts }: ChunkSeconds,
  { numChunks: r, gradientSeconds = 0 }: LayerSchedule,
): PipelinePredicates => {
  // Seconds of inter-node traffic between the end of the first dispatch and the start of the last combine.
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

/** Selects the case from the predicates. For any combination of predicates, exactly one of the four cases applies. */
export const pipelineBound = ({ q1, q2, q3, q4, q5, q6, q7 }: PipelinePredicates): PipelineBound => {
  if (q1) {
    if (q2) return q5 ? "inter-node" : "compute";
    return q4 ? "inter-node" : "all-to-all";
  }
  if (q3) return q7 ? "inter-node" : "compute";
  return q6 ? "inter-node" : "intra-node";
};

/**
 * Finds the FSMoE paper's case for a pipelined layer, and the layer's time by the formula of this case:
 *
 *     inter-node   2r · t_a2a + t_gar                  compute      2 · t_a2a + t_ag + t_rs + r · t_exp
 *     all-to-all   2r · t_a2a + t_ag + t_rs            intra-node   2 · t_a2a + r · t_ag + r · t_rs
 *
 * If t_ag = t_rs the result equals `layerTimeline` with "gathers-first". If t_ag and t_rs differ, the result is a lower
 * bound, because Q1 only considers the all-gather. With eight chunks, the bound may be as low as an eighth of the
 * actual time. Therefore planners use `layerTimeline`, and this function only names the bottleneck.
 *
 * @param chunk Seconds of the operations on one chunk.
 * @param schedule Schedule of the layer. Its `intraNodeOrder` is ignored; "gathers-first" is assumed.
 *
 * @example
 * ```ts
 * const chunk = { allToAll: 1, allGather: 0.5, reduceScatter: 0.5, experts: 4 };
 * console.log(pipelineCase(chunk, { numChunks: 2 })); // { bound: 'compute', seconds: 11 }
 * ```
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
