import {
  type GradientProfile,
  mergeOptimally,
  type PiecewiseCollectiveModel,
  planByteScheduler,
  priorityTimeline,
  timelineOf,
} from "@skein/cost-model";

/**
 * What a way to exchange that no job runs would leave of communication, beside the best that jobs run of its kind; both
 * by formulas of one network.
 */
export interface Bound {
  readonly name: string;
  readonly exposedSeconds: number;
  readonly besideSeconds: number;
  readonly why: string;
}

/**
 * What pieces with priorities would reach, dense, if the forward pass could begin before all gradients are in
 * (ByteScheduler), beside merged gradients. Not to be set beside simulated steps, in which links within hosts and
 * between them carry different messages at once.
 */
export const boundsOf = (profile: GradientProfile, allReduce: PiecewiseCollectiveModel): Bound[] => [
  {
    name: "ByteScheduler",
    exposedSeconds: Math.max(
      0,
      priorityTimeline(profile, planByteScheduler(profile, allReduce), allReduce).exposedSeconds,
    ),
    besideSeconds: timelineOf(profile, mergeOptimally(profile, allReduce), allReduce).exposedSeconds,
    why: "no job runs it: a step here ends when all its gradients are in",
  },
];
