import type { AllToAllLevel, LinkSample } from "@skein/collectives";
import type { BlockingCommunicator } from "@skein/collectives/node";
import { median } from "@skein/measuring";

/** All-to-all times of a level as measured by one rank. */
export interface AllToAllSamples {
  readonly level: AllToAllLevel;
  /** Number of ranks in a group. */
  readonly ranks: number;
  /** Measured times, each with the number of bytes per rank, including bytes that a rank sends to itself. */
  readonly samples: readonly LinkSample[];
}

type Hosts = readonly (readonly number[])[];

/**
 * Returns the groups of ranks of each level: all ranks, the ranks of one host, and the ranks at the same position on
 * each host. Returns only the level of all ranks if there is one host, or one rank per host, or if hosts have different
 * numbers of ranks.
 */
export const groupsOfLevels = (hosts: Hosts): { readonly level: AllToAllLevel; readonly groups: Hosts }[] => {
  const all = { level: "all", groups: [hosts.flat().toSorted((a, b) => a - b)] } as const;
  const size = hosts[0]!.length;
  if (hosts.length === 1 || size === 1 || hosts.some(({ length }) => length !== size)) return [all];
  const across = Array.from({ length: size }, (_, position) => hosts.map((host) => host[position]!));
  return [all, { level: "within", groups: hosts }, { level: "across", groups: across }];
};

/** Returns the number of repetitions for a median. Smaller for large operands, because long times vary less. */
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
 * Measures the all-to-all of each level. All groups of a level run at the same time, as when tokens are sent to
 * experts. Must be called on every rank of the world.
 *
 * @param regions Memory regions for input and output; each has the size of the largest operand plus one byte per rank.
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
