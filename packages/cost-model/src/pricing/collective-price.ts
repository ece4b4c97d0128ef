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
import type { Phase } from "../simulation/task.ts";

/** Predicted time of a collective, and the chosen algorithm. */
export interface CollectivePrice {
  readonly algorithm: string;
  readonly segments: number;
  readonly seconds: number;
  /** Bytes sent by the rank that sends most. */
  readonly sentBytes: number;
  /** Phases within hosts, then between hosts, if the algorithm has them. Their times add up to `seconds`. */
  readonly phases: readonly Phase[];
}

/**
 * Prices a collective of one group. `bytes` is S in docs/algorithms.md: the larger of operand and result.
 *
 * @param isRagged whether the number of rows is known only at run time; the price assumes all rows. Default: false.
 */
export type CollectivePricer = (kind: CollectiveKind, bytes: number, isRagged?: boolean) => CollectivePrice;

/**
 * Price collectives of a group with the algorithm that the collectives package would choose, along the busiest path of
 * its schedule in the α–β–γ model. The time of sums, less the part hidden behind messages, is included in the transfer
 * of the last phase. If values must be read back from a device first, reading is part of the first phase's start-up,
 * and writing back is part of the last phase's start-up: other ranks may send meanwhile, but the next collective of
 * this rank may not.
 *
 * @param readBack between the device's memory and the sending host. Default: collectives access the device's memory
 * directly.
 * @throws InvariantError if no algorithm fits.
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
    const phases: Phase[] = [
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

/** Build pricers for several groups, by mesh axis. */
export const collectivePricers = (
  groups: { readonly [axis: string]: GroupSelectionOptions },
  readBack?: TransferTimes,
): { readonly [axis: string]: CollectivePricer } =>
  Object.fromEntries(Object.entries(groups).map(([axis, group]) => [axis, collectivePricer(group, readBack)]));
