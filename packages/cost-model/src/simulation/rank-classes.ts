import { programNumbers } from "./same-program.ts";
import type { SimulatedWorld } from "./task.ts";

/** Ranks with identical behavior at identical times, represented by one of them. */
export interface RankClass {
  readonly rank: number;
  /** Class of the rank's group, by axis. */
  readonly groupOf: ReadonlyMap<string, number>;
}

/** Groups with identical behavior at identical times. */
export interface GroupClass {
  readonly axis: string;
  /** Ranks of the representative group. */
  readonly ranks: readonly number[];
  readonly numGroups: number;
  /** Classes of its ranks, without duplicates. */
  readonly members: readonly number[];
  /** Classes of its hosts, without duplicates, each with the number of groups of this class on a host of that class. */
  readonly hosts: readonly { readonly link: number; readonly flows: number }[];
}

/** A world reduced to one rank, group and host per class. */
export interface WorldClasses {
  /** Class of each rank. */
  readonly classOf: readonly number[];
  readonly ranks: readonly RankClass[];
  readonly groups: readonly GroupClass[];
  readonly numHosts: number;
}

/** Number keys in the order of their first occurrence; equal keys get equal numbers. */
const numbered = (keys: readonly string[]): number[] => {
  const numbers = new Map<string, number>();
  return keys.map((key) => {
    const number = numbers.get(key) ?? numbers.size;
    numbers.set(key, number);
    return number;
  });
};

/**
 * Maximum number of refinement rounds; after that every rank is a class of its own. If ranks differ by their distance
 * from an end, each round separates only one more rank.
 */
const maxRounds = 16;

const countOf = (colors: readonly number[]): number => new Set(colors).size;

/** Number of occurrences of each color, in the order of colors, as text. */
const tally = (colors: Iterable<number>): string => {
  const counts = new Map<number, number>();
  for (const color of colors) counts.set(color, (counts.get(color) ?? 0) + 1);
  return [...counts]
    .sort(([a], [b]) => a - b)
    .map(([color, count]) => `${color}×${count}`)
    .join();
};

/**
 * Find ranks that must behave identically at identical times, by refining classes until they are stable. Ranks of a
 * class have equal programs (and equal `marks`), their groups along each axis have equally many ranks of each class,
 * and their hosts have equally many ranks of each class and equally many groups of each class.
 *
 * Correctness: the times of a rank follow from its program and the ends of its collectives; those of a collective
 * follow from its members' starts, the queues of their streams, and the number of flows on its hosts. If all ranks of
 * each class agree up to some time, they also agree on the next event.
 *
 * Cost: O(ranks · axes) per round; usually one or two rounds, at most `maxRounds`.
 *
 * @param marks by rank: further distinctions between ranks, such as a straggler's factor. Default: none.
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
    // Color of the groups along all axes, in the order of axes, and of the host.
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
