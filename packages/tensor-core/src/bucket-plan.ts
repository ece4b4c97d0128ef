/**
 * Assignment of gradients to communication buckets: per bucket, the paths of its tensors (`leafPaths`) in memory order.
 * Buckets are listed in the order in which their gradients become ready. Plain data that planners produce and gradient
 * exchanges consume; all ranks must use the same plan.
 */
export type BucketPlan = readonly (readonly string[])[];
