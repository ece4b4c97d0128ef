import { programNumbers } from "./same-program.ts";
import type { SimulatedWorld } from "./task.ts";

/** Class of ranks whose simulated times are always equal. One rank represents the class in the simulation. */
export interface RankClass {
  readonly rank: number;
  /** Class index of the rank's group, by axis. */
  readonly groupOf: ReadonlyMap<string, number>;
}

/** Class of groups whose simulated times are always equal. */
export interface GroupClass {
  readonly axis: string;
  /** Ranks of the representative group. */
  readonly ranks: readonly number[];
  readonly numGroups: number;
  /** Class indices of the group's ranks, without duplicates. */
  readonly members: readonly number[];
  /**
   * Classes of the group's hosts, without duplicates. `link`: index of the host class. `flows`: number of groups of
   * this group class on one such host.
   */
  readonly hosts: readonly { readonly link: number; readonly flows: number }[];
}

/** A simulated world, reduced to one representative rank, group and host per class. */
export interface WorldClasses {
  /** Class index of each rank. */
  readonly classOf: readonly number[];
  readonly ranks: readonly RankClass[];
  readonly groups: readonly GroupClass[];
  readonly numHosts: number;
}

/** Replaces keys by numbers in the order of their first occurrence; equal keys get equal numbers. */
const numbered = (keys: readonly string[]): number[] => {
  const numbers = new Map<string, number>();
  return keys.map((key) => {
    const number = numbers.get(key) ?? numbers.size;
    numbers.set(key, number);
    return number;
  });
};

/**
 * Maximum number of refinement rounds. After these rounds, every rank becomes a separate class. For example, in a long
 * chain of ranks, each round may find only one new class.
 */
const maxRounds = 16;

const countOf = (colors: readonly number[]): number => new Set(colors).size;

/** Returns a text that lists each color (index of a rank class) with its count, in ascending order of the colors. */
const tally = (colors: Iterable<number>): string => {
  const counts = new Map<number, number>();
  for (const color of colors) counts.set(color, (counts.get(color) ?? 0) + 1);
  return [...counts]
    .sort(([a], [b]) => a - b)
    .map(([color, count]) => `${color}×${count}`)
    .join();
};

/**
 * Finds classes of ranks whose simulated times must be equal, by refining classes until they are stable. Ranks in one
 * class have equal programs and equal `marks`. Along each axis, their groups have the same number of ranks per class.
 * Their hosts have the same number of ranks and groups per class.
 *
 * Correctness: the times of a rank follow from its program and the ends of its collectives. The times of a collective
 * follow from its start on each member, the members' stream queues, and the number of flows on its hosts. If the ranks
 * of each class have equal times so far, they also have the same next event.
 *
 * Cost: O(ranks · axes) per round; usually one or two rounds, at most `maxRounds`.
 *
 * @param marks Further distinctions between ranks, by rank, such as the factor of a straggler. Default: no further
 * distinctions.
 *
 * Source: color refinement; its stable coloring is an equitable partition.
 */
export const rankClasses = (world: SimulatedWorld, marks?: readonly number[]): WorldClasses => {
  const { programs, hosts = programs.map((_, rank) => [rank]) } = world;
  const hostOf: number[] = [];
  for (const [host, ranks] of hosts.entries()) for (const rank of ranks) hostOf[rank] = host;
  const groups = Object.entries(world.groups).flatMap(([axis, parts]) => parts.map((ranks) => ({ axis, ranks })));
  const groupsOf: number[][] = programs.map(() => []);
  for (const [group, { ranks }] of groups.entries()) for (const rank of ranks) groupsOf[rank]!.push(group);
  const groupsOn = hosts.map((ranks) => new Set(ranks.flatMap((rank) => groupsOf[rank]!)));
  const hostsUnder = groups.map(({ ranks }) => new Set(ranks.map((rank) => hostOf[rank]!)));

  let classOfRank = numbered(programNumbers(programs).map((program, rank) => `${program} ${marks?.[rank] ?? 0}`));
  let classOfGroup: number[];
  let classOfHost: number[];
  for (let round = 0; ; round++) {
    const before = round < maxRounds ? classOfRank : [...programs.keys()];
    const groupColors = numbered(
      groups.map(({ axis, ranks }) => `${axis} ${tally(ranks.map((rank) => before[rank]!))}`),
    );
    const hostColors = numbered(
      hosts.map(
        (ranks, host) =>
          `${tally(ranks.map((rank) => before[rank]!))} ${tally([...groupsOn[host]!].map((group) => groupColors[group]!))}`,
      ),
    );
    // New color of a rank: its groups' colors, in the order of the axes, and its host's color.
    classOfRank = numbered(
      before.map(
        (color, rank) =>
          `${color} ${groupsOf[rank]!.map((group) => groupColors[group]!).join()} ${hostColors[hostOf[rank]!]}`,
      ),
    );
    [classOfGroup, classOfHost] = [groupColors, hostColors];
    if (countOf(classOfRank) === countOf(before)) break;
  }

  const firsts = (colors: readonly number[]): number[] => {
    const first: number[] = [];
    for (const [i, color] of colors.entries()) first[color] ??= i;
    return first;
  };
  const flowsOn = (host: number, color: number): number => {
    let flows = 0;
    for (const group of groupsOn[host]!) if (classOfGroup[group] === color) flows++;
    return flows;
  };
  const numGroups = new Map<number, number>();
  for (const color of classOfGroup) numGroups.set(color, (numGroups.get(color) ?? 0) + 1);
  const firstHosts = firsts(classOfHost);
  return {
    classOf: classOfRank,
    ranks: firsts(classOfRank).map((rank) => ({
      rank,
      groupOf: new Map(groupsOf[rank]!.map((group) => [groups[group]!.axis, classOfGroup[group]!])),
    })),
    groups: firsts(classOfGroup).map((group, color) => ({
      ...groups[group]!,
      numGroups: numGroups.get(color)!,
      members: [...new Set(groups[group]!.ranks.map((rank) => classOfRank[rank]!))],
      hosts: [...new Set([...hostsUnder[group]!].map((host) => classOfHost[host]!))].map((link) => ({
        link,
        flows: flowsOn(firstHosts[link]!, color),
      })),
    })),
    numHosts: firstHosts.length,
  };
};
