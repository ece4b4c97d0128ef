import type { CollectiveKind } from "@skein/tensor-core/backend";

/** Kinds that combine what ranks have: they take the dtypes of `reducible`, and bits may follow from the order. */
export const combiningKinds: ReadonlySet<CollectiveKind> = new Set<CollectiveKind>([
  "all-reduce",
  "reduce-scatter",
  "reduce",
]);

/** Kinds whose output may be the input's own region. */
export const inPlaceKinds: ReadonlySet<CollectiveKind> = new Set<CollectiveKind>(["all-reduce", "broadcast", "reduce"]);
