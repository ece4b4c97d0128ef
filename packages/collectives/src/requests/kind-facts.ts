import type { CollectiveKind } from "@skein/tensor-core/backend";

/**
 * Collectives that combine the operands of ranks. These collectives accept only the dtypes of `reducible`, and the bits
 * of a result may depend on the order of the operands.
 */
export const combiningKinds: ReadonlySet<CollectiveKind> = new Set<CollectiveKind>([
  "all-reduce",
  "reduce-scatter",
  "reduce",
]);

/** Collectives whose output may be the same region as the input. */
export const inPlaceKinds: ReadonlySet<CollectiveKind> = new Set<CollectiveKind>(["all-reduce", "broadcast", "reduce"]);
