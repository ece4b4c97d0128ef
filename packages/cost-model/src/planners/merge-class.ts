import type { ProfiledTensor } from "../gradient-profile.ts";

/** Function that returns the merge class of a gradient, by path. Only gradients of one class may share a message. */
export type MergeClass = (path: string) => string;

/** Constraints on merging gradients. */
export interface MergeOptions {
  /**
   * Function that returns the merge class of each gradient, such as the mesh axis over which the gradient is averaged.
   * Default: all gradients are in one class.
   */
  readonly mergeClassOf?: MergeClass | undefined;
}

/** Default merge-class function. Puts all gradients into one class. */
export const oneMergeClass: MergeClass = () => "";

/**
 * Returns the messages for consecutive gradients: one message per merge class, ordered by the time when the last
 * gradient of the message is ready.
 */
export const messagesOfRun = (
  run: readonly ProfiledTensor[],
  mergeClassOf: MergeClass,
): readonly (readonly [ProfiledTensor, ...ProfiledTensor[]])[] => {
  const lastIndices = new Map(run.map(({ path }, index) => [mergeClassOf(path), index]));
  return [...Map.groupBy(run, ({ path }) => mergeClassOf(path))]
    .sort(([a], [b]) => lastIndices.get(a)! - lastIndices.get(b)!)
    .map(([, tensors]) => tensors as [ProfiledTensor, ...ProfiledTensor[]]);
};
