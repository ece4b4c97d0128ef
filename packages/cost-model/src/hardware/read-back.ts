import type { CollectiveKind } from "@skein/tensor-core/backend";
import type { TransferTimes } from "./hardware.ts";

/**
 * Computes the seconds to copy the operand of a collective from a device to the host, and its result back to the
 * device: start-up + bytes · seconds per byte for each copy.
 *
 * @param bytes S in docs/algorithms.md: the larger of operand and result.
 */
export const readBackSeconds = (
  { startupSeconds, secondsPerByte }: TransferTimes,
  kind: CollectiveKind,
  bytes: number,
  worldSize: number,
): { readonly down: number; readonly up: number } => {
  const secondsOf = (shared: boolean): number => startupSeconds + secondsPerByte * (shared ? bytes / worldSize : bytes);
  return { down: secondsOf(kind === "all-gather"), up: secondsOf(kind === "reduce-scatter") };
};
