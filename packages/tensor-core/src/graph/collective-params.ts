import type { Params } from "./graph.ts";

/** Parameters of every collective node: the mesh axis, and the number of ranks along it. */
export type CollectiveParams = Params & {
  readonly axis: string;
  readonly axisSize: number;
  /** See `CollectiveRequest`. */
  readonly priority?: number;
};
