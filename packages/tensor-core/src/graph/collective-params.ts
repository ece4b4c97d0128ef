import type { Params } from "./graph.ts";

/** Parameters of every collective node: the mesh axis, and the number of ranks along that axis. */
export type CollectiveParams = Params & {
  readonly axis: string;
  readonly axisSize: number;
  /** Scheduling priority, 0 to 3, see `CollectiveRequest`. Default: 0. */
  readonly priority?: number;
};
