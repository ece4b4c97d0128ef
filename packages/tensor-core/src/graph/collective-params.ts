import type { Params } from "./graph.ts";

/** Params of every collective node: its mesh axis, and the number of ranks along that axis. */
export type CollectiveParams = Params & {
  readonly axis: string;
  readonly axisSize: number;
  /** See `CollectiveRequest`. */
  readonly priority?: number;
};
