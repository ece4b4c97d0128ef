import type { CollectiveKind } from "@skein/tensor-core/backend";

/**
 * Kinds that combine operands of ranks. They accept the dtypes of `reducible`, and their bits may depend on the order.
 */
export const combiningKinds: ReadonlySet<CollectiveKind> = new Set<CollectiveKind>([
  "all-reduce",
  "reduce-scatter",
  "reduce",
]);

/** Kinds whose output may be the same region as the input. */
export const inPlaceKinds: ReadonlySet<CollectiveKind> = new Set<CollectiveKind>(["all-reduce", "broadcast", "reduce"]);
