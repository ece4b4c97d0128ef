/**
 * Which gradients travel together: for each bucket the paths of its tensors (`leafPaths`), in the order in which they
 * lie in it. Buckets stand in the order in which they become ready. Plain data: planners make it, exchanges take it;
 * all ranks must use the same.
 */
export type BucketPlan = readonly (readonly string[])[];
