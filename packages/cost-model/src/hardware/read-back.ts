import type { CollectiveKind } from "@skein/tensor-core/backend";
import type { TransferTimes } from "./hardware.ts";

/**
 * Seconds to read the operand of a collective back from a device, and to write its result to the device: start-up +
 * bytes · seconds per byte each.
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
