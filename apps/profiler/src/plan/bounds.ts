import {
  type GradientProfile,
  mergeOptimally,
  type PiecewiseCollectiveModel,
  planByteScheduler,
  priorityTimeline,
  timelineOf,
} from "@skein/cost-model";

/**
 * Exposed communication of a way to exchange that no job can run, next to that of the best comparable way that jobs
 * run. Both come from closed forms for a single network.
 */
export interface Bound {
  readonly name: string;
  readonly exposedSeconds: number;
  /** Exposed seconds of the best comparable way that jobs run. */
  readonly besideSeconds: number;
  readonly why: string;
}

/**
 * Bounds for dense gradients: ByteScheduler (pieces with priorities, if the forward pass could begin before all
 * gradients arrive), compared with merged gradients. Do not compare these with simulated steps, in which links within
 * and between hosts carry different messages at once.
 */
export const boundsOf = (profile: GradientProfile, allReduce: PiecewiseCollectiveModel): Bound[] => [
  {
    name: "ByteScheduler",
    exposedSeconds: Math.max(
      0,
      priorityTimeline(profile, planByteScheduler(profile, allReduce), allReduce).exposedSeconds,
    ),
    besideSeconds: timelineOf(profile, mergeOptimally(profile, allReduce), allReduce).exposedSeconds,
    why: "no job can run it, because a step here ends when all its gradients have arrived",
  },
];
