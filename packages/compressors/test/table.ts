import { basicRows } from "./rows/basics.ts";
import { lowRankRows } from "./rows/low-rank.ts";
import { quantizerRows } from "./rows/quantizers.ts";
import type { Row } from "./rows/row.ts";
import { sparseExchangeRows } from "./rows/sparse-exchanges.ts";
import { sparsifierRows } from "./rows/sparsifiers.ts";
import { wrapperRows } from "./rows/wrappers.ts";

/** Expected properties of all aggregators of this package, one row per aggregator. */
export const rows: readonly Row[] = [
  ...basicRows,
  ...sparsifierRows,
  ...sparseExchangeRows,
  ...quantizerRows,
  ...lowRankRows,
  ...wrapperRows,
];
