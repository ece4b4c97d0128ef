import {
  algorithmSelector,
  ethernetLinks,
  type GroupSituation,
  predictedSeconds,
  raggedExchange,
} from "@skein/collectives";
import type { CollectiveKind } from "@skein/tensor-core/backend";
import type { TransferTimes } from "../hardware/hardware.ts";
import { readBackSeconds } from "../hardware/read-back.ts";
import type { Phase } from "../simulation/task.ts";

/** What a collective is expected to take, and by which algorithm. */
export interface CollectivePrice {
  readonly algorithm: string;
  readonly segments: number;
  readonly seconds: number;
  /** By the rank that sends most. */
  readonly sentBytes: number;
  /** Within hosts, then between them: those that the algorithm uses. They add up to `seconds`. */
  readonly phases: readonly Phase[];
}

/**
 * Prices a collective of one group. `bytes` are S of docs/algorithms.md: the larger of operand and result.
 *
 * @param isRagged only as many rows travel as are said when it runs; it is priced as if all did. Default: false.
 */
export type CollectivePricer = (kind: CollectiveKind, bytes: number, isRagged?: boolean) => CollectivePrice;

/**
 * Price collectives of a group by the algorithm that the collectives would choose for it, its schedule added up along
 * the busiest path in the α–β–γ model. Sums, and what of them hides behind messages, go with the bytes of the last
 * phase. Where values must first be read back, that is part of the first phase's start-up, and their way up of the last
 * one's: others may send meanwhile, this rank's next collective may not.
 *
 * @param readBack between the device's memory and what sends. Default: collectives read the device's memory itself.
 * @throws InvariantError when no algorithm fits.
 */
export const collectivePricer = (group: GroupSituation, readBack?: TransferTimes): CollectivePricer => {
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

const withoutReadBack = (group: GroupSituation): CollectivePricer => {
  const { worldSize, hosts, link = ethernetLinks } = group;
  if (worldSize === 1) return () => ({ algorithm: "none", segments: 1, seconds: 0, sentBytes: 0, phases: [] });
  const choose = algorithmSelector(group);
  return (kind, byteLength, isRagged = false) => {
    const { algorithm, segments } = isRagged ? { algorithm: raggedExchange, segments: 1 } : choose(kind, byteLength);
    const place = { worldSize, byteLength, segments, ...(hosts && { hosts }) };
    const seconds = predictedSeconds(algorithm, place, link);
    const { path, bytes: sentBytes } = algorithm.cost(place);
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

/** Price collectives of several groups, by mesh axis. */
export const collectivePricers = (
  groups: { readonly [axis: string]: GroupSituation },
  readBack?: TransferTimes,
): { readonly [axis: string]: CollectivePricer } =>
  Object.fromEntries(Object.entries(groups).map(([axis, group]) => [axis, collectivePricer(group, readBack)]));
