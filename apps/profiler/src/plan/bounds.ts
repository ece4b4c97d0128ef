import { type GradientProfile, type PiecewiseCollectiveModel, timelineOf } from "@skein/cost-model";
import { planMgWfbpOptimal, planByteScheduler, priorityTimeline } from "@skein/cost-model/planners";

/**
 * Lower bound for the exposed communication of a step: the exposed seconds of a theoretical gradient exchange that no
 * job can run. For comparison, the bound is stored with the result of the best similar exchange that jobs can run. Both
 * results are computed in closed form and assume that all links are equal.
 */
export interface Bound {
  readonly name: string;
  readonly exposedSeconds: number;
  /** Exposed seconds of the best similar exchange that jobs can run, for comparison with the bound. */
  readonly besideSeconds: number;
  readonly why: string;
}

/**
 * Computes bounds for dense gradients. The theoretical exchange is ByteScheduler, which sends partitions with
 * priorities, and would need a forward pass that begins before all gradients have arrived. The comparison is the
 * optimal MG-WFBP plan of merged gradients, which jobs can run. Do not compare these bounds with simulated steps, in
 * which links within and across hosts are busy at the same time.
 */
export const boundsOf = (profile: GradientProfile, allReduce: PiecewiseCollectiveModel): Bound[] => [
  {
    name: "ByteScheduler",
    exposedSeconds: Math.max(
      0,
      priorityTimeline(profile, planByteScheduler(profile, allReduce), allReduce).exposedSeconds,
    ),
    besideSeconds: timelineOf(profile, planMgWfbpOptimal(profile, allReduce), allReduce).exposedSeconds,
    why: "no job can run it, because a step here ends when all its gradients have arrived",
  },
];
