import type { ProfiledTensor } from "../gradient-profile.ts";

/** Gradients with another answer travel in messages of their own. */
export type Apart = (path: string) => string;

/** How gradients may be merged. */
export interface MergeOptions {
  /** Such as the mesh axis over which each is averaged. Default: all alike. */
  readonly apart?: Apart | undefined;
}

/** No gradient is kept apart from others. */
export const together: Apart = () => "";

/**
 * The messages of gradients that follow one another: one for each kind. First the one whose last gradient is ready
 * first.
 */
export const messagesOfRun = (
  run: readonly ProfiledTensor[],
  apart: Apart,
): readonly (readonly [ProfiledTensor, ...ProfiledTensor[]])[] => {
  const places = new Map(run.map(({ path }, place) => [apart(path), place]));
  return [...Map.groupBy(run, ({ path }) => apart(path))]
    .sort(([a], [b]) => places.get(a)! - places.get(b)!)
    .map(([, tensors]) => tensors as [ProfiledTensor, ...ProfiledTensor[]]);
};
