import { bytesPerElement, InvariantError } from "@skein/tensor-core";
import { checkRowCounts, type CollectiveRequest, readRowCounts } from "@skein/tensor-core/backend";
import type { Arithmetic } from "./arithmetic.ts";
import { RanksDisagreeError } from "./errors.ts";
import { type Walk, walk } from "./execute.ts";
import { raggedAllGatherSchedule, raggedAllToAllSchedule, rowCountSchedule } from "./ragged-schedule.ts";
import { sentElements } from "./schedule.ts";
import type { Transport } from "./transport/transport.ts";

const bytesPerCount = 4;

/**
 * Executes a ragged request: ranks exchange row counts, then only the valid rows. Counts are checked before any byte of
 * the result is written, so that a wrong count cannot cause writes beyond a chunk on any rank.
 *
 * Cost: one round for the counts, then P − 1 rounds; a rank sends 4 (P − 1) bytes and its rows for other ranks.
 *
 * @returns number of bytes sent.
 * @throws ArgumentError if this rank's row count is negative or exceeds the chunk.
 * @throws RanksDisagreeError if a peer's row count is negative or exceeds the chunk.
 */
export function* walkRagged(
  request: CollectiveRequest,
  tag: number,
  transport: Transport,
  arithmetic: Arithmetic,
): Walk<number> {
  const { kind, dtype, input, output, ragged } = request;
  if (ragged === undefined || (kind !== "all-to-all" && kind !== "all-gather"))
    throw new InvariantError(
      `a request of kind ${kind} ${ragged === undefined ? "without" : "with"} row counts was executed as a ragged request`,
    );
  const { rank, worldSize } = transport;
  const { capacity, rows, receivedRows } = ragged;
  const sent = readRowCounts(rows);
  checkRowCounts(kind, rank, sent, capacity);

  const counts = rowCountSchedule({ rank, worldSize, sent });
  yield* walk(counts, { input: rows, output: receivedRows, dtype: "i32", tag }, transport, arithmetic);
  const received = readRowCounts(receivedRows);
  const liar = received.findIndex((count) => count < 0 || count > capacity);
  if (liar !== -1) {
    throw new RanksDisagreeError(
      { rank, peer: liar, collective: `ragged ${kind}` },
      `rank ${liar} announces ${received[liar]} rows for rank ${rank}, whose chunks have room for ${capacity}`,
    );
  }

  const numChunks = kind === "all-to-all" ? worldSize : 1;
  const rowElements = capacity === 0 ? 0 : input.byteLength / bytesPerElement[dtype] / (numChunks * capacity);
  const schedule = (kind === "all-to-all" ? raggedAllToAllSchedule : raggedAllGatherSchedule)({
    rank,
    worldSize,
    capacity,
    rowElements,
    sent,
    received,
  });
  yield* walk(schedule, { input, output, dtype, tag }, transport, arithmetic);
  return sentElements(counts) * bytesPerCount + sentElements(schedule) * bytesPerElement[dtype];
}
