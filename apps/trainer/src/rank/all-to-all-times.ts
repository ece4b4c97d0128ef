import { median } from "@skein/cost-model";
import type { AllToAllLevel, LinkSample } from "@skein/collectives";
import type { BlockingCommunicator } from "@skein/collectives/node";

/** What a rank saw of the all-to-alls of a level. */
export interface AllToAllSamples {
  readonly level: AllToAllLevel;
  /** Ranks of a group. */
  readonly ranks: number;
  /** Times by the bytes that a rank sends, those to itself included. */
  readonly samples: readonly LinkSample[];
}

type Hosts = readonly (readonly number[])[];

/**
 * The groups of each level: all ranks, those of a host, and one rank of each host, of equal place there. Where there is
 * one host or one rank a host, and where hosts have different numbers of ranks, all ranks are the only level.
 */
export const groupsOfLevels = (hosts: Hosts): { readonly level: AllToAllLevel; readonly groups: Hosts }[] => {
  const all = { level: "all", groups: [hosts.flat().toSorted((a, b) => a - b)] } as const;
  const size = hosts[0]!.length;
  if (hosts.length === 1 || size === 1 || hosts.some(({ length }) => length !== size)) return [all];
  const across = Array.from({ length: size }, (_, place) => hosts.map((host) => host[place]!));
  return [all, { level: "within", groups: hosts }, { level: "across", groups: across }];
};

/** Enough for a median; large operands take long, and vary less. */
const repeatsOf = (bytes: number): number => (bytes < 100_000 ? 21 : bytes < 1_000_000 ? 9 : 5);

const timesOf = (
  communicator: BlockingCommunicator,
  operandBytes: number,
  regions: { readonly input: Uint8Array; readonly output: Uint8Array },
): LinkSample => {
  const none = regions.input.subarray(0, 0);
  const run = (kind: "barrier" | "all-to-all", input: Uint8Array, output: Uint8Array): void =>
    communicator.wait(communicator.start({ kind, dtype: "u8", input, output }));
  const { worldSize } = communicator;
  const bytes = Math.ceil(operandBytes / worldSize) * worldSize;
  const [input, output] = [regions.input.subarray(0, bytes), regions.output.subarray(0, bytes)];
  run("all-to-all", input, output);
  const times = Array.from({ length: repeatsOf(bytes) }, () => {
    run("barrier", none, none);
    const began = performance.now();
    run("all-to-all", input, output);
    return (performance.now() - began) / 1000;
  });
  return { bytes, seconds: median(times) };
};

/**
 * Time the all-to-all of each level, all groups of a level at once, as tokens travel to experts. Every rank of the
 * world calls it.
 *
 * @param regions of memory, each as large as the largest operand and a byte more for each rank.
 */
export const allToAllTimes = (
  world: BlockingCommunicator,
  hosts: Hosts,
  operandBytes: readonly number[],
  regions: { readonly input: Uint8Array; readonly output: Uint8Array },
): AllToAllSamples[] =>
  groupsOfLevels(hosts).map(({ level, groups }) => {
    const group = world.split(groups, `all-to-all ${level}`);
    const samples = operandBytes.map((bytes) => timesOf(group, bytes, regions));
    return { level, ranks: group.worldSize, samples };
  });
