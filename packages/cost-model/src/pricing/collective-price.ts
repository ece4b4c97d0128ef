import {
  algorithmSelector,
  ethernetLinks,
  type GroupSelectionOptions,
  predictedSeconds,
  raggedExchange,
} from "@skein/collectives";
import type { CollectiveKind } from "@skein/tensor-core/backend";
import type { TransferTimes } from "../hardware/hardware.ts";
import { readBackSeconds } from "../hardware/read-back.ts";
import type { CollectivePhase } from "../simulation/task.ts";

/** Predicted time of a collective, with the chosen algorithm. */
export interface CollectivePrice {
  readonly algorithm: string;
  readonly segments: number;
  readonly seconds: number;
  /** Number of bytes sent by the rank that sends the most bytes. */
  readonly sentBytes: number;
  /**
   * Phases of the algorithm in order; intra-node phases and inter-node phases for a two-level algorithm. The times of
   * the phases add up to `seconds`.
   */
  readonly phases: readonly CollectivePhase[];
}

/**
 * Function that predicts the time of a collective in one group: its price. `bytes` is S in docs/algorithms.md: the
 * larger of operand and result.
 *
 * @param isRagged Whether the number of rows is known only at run time. If true, the prediction assumes the maximum
 * number of rows. Default: false.
 */
export type CollectivePricer = (kind: CollectiveKind, bytes: number, isRagged?: boolean) => CollectivePrice;

/**
 * Builds a pricer: a function that predicts the times of a group's collectives. Each prediction uses the algorithm that
 * the collectives package would choose, and follows the busiest path of its schedule in the α–β–γ model. The time of
 * sums, except the part hidden by messages, is included in the transfer of the last phase. If values must be read back
 * from a device first, the start-up of the first phase includes reading, and the start-up of the last phase includes
 * writing back. During these copies other ranks may send, but the next collective of this rank must wait.
 *
 * @param readBack Times of transfers between the device's memory and the host that sends messages. Default: collectives
 * access the device's memory directly.
 * @throws InvariantError if no algorithm fits.
 * @example
 * ```ts
 * const price = collectivePricer({ worldSize: 4, sharesMemory: false });
 * const { algorithm, sentBytes } = price("all-reduce", 1_000_000);
 * console.log(algorithm, sentBytes); // direct-all-reduce 1500000
 * ```
 */
export const collectivePricer = (group: GroupSelectionOptions, readBack?: TransferTimes): CollectivePricer => {
  const price = withoutReadBack(group);
  if (readBack === undefined || group.worldSize === 1) return price;
  return (kind, bytes, isRagged) => {
    const { phases, seconds, ...rest } = price(kind, bytes, isRagged);
    const { down, up } = readBackSeconds(readBack, kind, bytes, group.worldSize);
    const [first = { stream: "intra-node" as const, startupSeconds: 0, transferSeconds: 0 }, ...others] = phases;
    const withDown = [{ ...first, startupSeconds: first.startupSeconds + down }, ...others];
    const last = withDown.pop()!;
    return {
      ...rest,
      seconds: seconds + down + up,
      phases: [...withDown, { ...last, startupSeconds: last.startupSeconds + up }],
    };
  };
};

const withoutReadBack = (group: GroupSelectionOptions): CollectivePricer => {
  const { worldSize, hosts, link = ethernetLinks } = group;
  if (worldSize === 1) return () => ({ algorithm: "none", segments: 1, seconds: 0, sentBytes: 0, phases: [] });
  const choose = algorithmSelector(group);
  return (kind, byteLength, isRagged = false) => {
    const { algorithm, segments } = isRagged ? { algorithm: raggedExchange, segments: 1 } : choose(kind, byteLength);
    const situation = { worldSize, byteLength, segments, ...(hosts && { hosts }) };
    const seconds = predictedSeconds(algorithm, situation, link);
    const { path, bytes: sentBytes } = algorithm.cost(situation);
    const { within, across } = path;
    const phases: CollectivePhase[] = [
      {
        stream: "intra-node" as const,
        startupSeconds: link.within.secondsPerMessage * within.messages,
        transferSeconds: link.within.secondsPerByte * within.bytes,
        messages: within.messages,
      },
      {
        stream: "inter-node" as const,
        startupSeconds: link.across.secondsPerMessage * across.messages,
        transferSeconds: link.across.secondsPerByte * across.bytes,
        messages: across.messages,
      },
    ].filter(({ startupSeconds, transferSeconds }) => startupSeconds + transferSeconds > 0);
    const last = phases.pop();
    if (last === undefined) return { algorithm: algorithm.name, segments, seconds, sentBytes, phases };
    const before = phases.reduce(
      (sum, phase) => sum + phase.startupSeconds + phase.transferSeconds,
      last.startupSeconds,
    );
    return {
      algorithm: algorithm.name,
      segments,
      seconds,
      sentBytes,
      phases: [...phases, { ...last, transferSeconds: seconds - before }],
    };
  };
};

/**
 * Builds the collective pricers of several groups, by mesh axis.
 *
 * @example
 * ```ts
 * const prices = collectivePricers({ data: { worldSize: 4, sharesMemory: false } });
 * console.log(prices["data"]!("all-reduce", 1_000_000).sentBytes); // 1500000
 * ```
 */
export const collectivePricers = (
  groups: { readonly [axis: string]: GroupSelectionOptions },
  readBack?: TransferTimes,
): { readonly [axis: string]: CollectivePricer } =>
  Object.fromEntries(Object.entries(groups).map(([axis, group]) => [axis, collectivePricer(group, readBack)]));
