import { programNumbers } from "./same-program.ts";
import type { SimulatedWorld } from "./task.ts";

/** Class of ranks that behave identically at identical times. One rank represents the class in the simulation. */
export interface RankClass {
  readonly rank: number;
  /** Index of the class of the rank's group, by axis. */
  readonly groupOf: ReadonlyMap<string, number>;
}

/** Class of groups that behave identically at identical times. */
export interface GroupClass {
  readonly axis: string;
  /** Ranks of the group that represents the class. */
  readonly ranks: readonly number[];
  readonly numGroups: number;
  /** Indices of the classes of the group's ranks, without duplicates. */
  readonly members: readonly number[];
  /**
   * Indices of the classes of the group's hosts (`link`), without duplicates, each with the number of groups of this
   * class on such a host (`flows`).
   */
  readonly hosts: readonly { readonly link: number; readonly flows: number }[];
}

/** A world reduced to one representative rank, group and host per class. */
export interface WorldClasses {
  /** Index of the class of each rank. */
  readonly classOf: readonly number[];
  readonly ranks: readonly RankClass[];
  readonly groups: readonly GroupClass[];
  readonly numHosts: number;
}

/** Replace keys by numbers in the order of their first occurrence; equal keys get equal numbers. */
const numbered = (keys: readonly string[]): number[] => {
  const numbers = new Map<string, number>();
  return keys.map((key) => {
    const number = numbers.get(key) ?? numbers.size;
    numbers.set(key, number);
    return number;
  });
};

/**
 * Maximum number of refinement rounds; then every rank becomes its own class. In a chain of ranks that differ by their
 * distance from one end of the chain, each round would separate only one more rank.
 */
const maxRounds = 16;

const countOf = (colors: readonly number[]): number => new Set(colors).size;

/** Returns the number of occurrences of each color as text, in the order of colors. */
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
 * class have equal programs (and equal `marks`), their groups along each axis contain the same number of ranks of each
 * class, and their hosts contain the same numbers of ranks and of groups of each class.
 *
 * Correctness: the times of a rank follow from its program and the ends of its collectives; the times of a collective
 * follow from the starts by its members, the queues of their streams, and the number of flows on its hosts. If all
 * ranks of each class agree up to some time, they also agree on the next event.
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
    // New color of a rank: colors of its groups along all axes, in the order of the axes, and of its host.
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
