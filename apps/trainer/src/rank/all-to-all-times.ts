import type { AllToAllLevel, LinkSample } from "@skein/collectives";
import type { BlockingCommunicator } from "@skein/collectives/node";
import { median } from "@skein/measuring";

/** All-to-all times of one level (all ranks, within hosts or across hosts), as measured by one rank. */
export interface AllToAllSamples {
  readonly level: AllToAllLevel;
  /** Number of ranks in a group. */
  readonly ranks: number;
  /**
   * Measured times by operand size. The size is in bytes per rank, and includes the bytes that a rank sends to itself.
   */
  readonly samples: readonly LinkSample[];
}

type Hosts = readonly (readonly number[])[];

/**
 * Returns the levels at which all-to-alls run, each with its groups of ranks. `all`: one group of all ranks. `within`:
 * a group per host. `across`: one group per rank index within hosts, with one rank of each host. Only `all` is returned
 * if there is a single host, if hosts have one rank each, or if hosts have different numbers of ranks.
 */
export const groupsOfLevels = (hosts: Hosts): { readonly level: AllToAllLevel; readonly groups: Hosts }[] => {
  const all = { level: "all", groups: [hosts.flat().toSorted((a, b) => a - b)] } as const;
  const size = hosts[0]!.length;
  if (hosts.length === 1 || size === 1 || hosts.some(({ length }) => length !== size)) return [all];
  const across = Array.from({ length: size }, (_, position) => hosts.map((host) => host[position]!));
  return [all, { level: "within", groups: hosts }, { level: "across", groups: across }];
};

/**
 * Returns the number of times that an all-to-all with operands of this size is timed. The measured time is the median.
 * All-to-alls of large operands are timed less often, because their times vary less.
 */
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
 * experts. Must be called on every rank of the run.
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
