import type { CollectiveKind } from "@skein/tensor-core/backend";

/**
 * Collectives that combine operands of ranks. They accept the dtypes of `reducible`, and the bits of their results may
 * depend on the order.
 */
export const combiningKinds: ReadonlySet<CollectiveKind> = new Set<CollectiveKind>([
  "all-reduce",
  "reduce-scatter",
  "reduce",
]);

/** Collectives whose output may be the same region as the input. */
export const inPlaceKinds: ReadonlySet<CollectiveKind> = new Set<CollectiveKind>(["all-reduce", "broadcast", "reduce"]);
