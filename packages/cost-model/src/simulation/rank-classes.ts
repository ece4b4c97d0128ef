import { programNumbers } from "./same-program.ts";
import type { SimulatedWorld } from "./task.ts";

/** Ranks that do the same at the same times; one of them stands for all. */
export interface RankClass {
  readonly rank: number;
  /** By axis: which class its group is of. */
  readonly groupOf: ReadonlyMap<string, number>;
}

/** Groups that do the same at the same times. */
export interface GroupClass {
  readonly axis: string;
  /** Of the one that stands for all. */
  readonly ranks: readonly number[];
  readonly numGroups: number;
  /** Classes of its ranks, each once. */
  readonly members: readonly number[];
  /** Classes of the hosts that it lies on, each once, and how many groups of this class lie on a host of that class. */
  readonly hosts: readonly { readonly link: number; readonly flows: number }[];
}

/** A world as seen from one rank, group and host of each class. */
export interface WorldClasses {
  /** By rank. */
  readonly classOf: readonly number[];
  readonly ranks: readonly RankClass[];
  readonly groups: readonly GroupClass[];
  readonly numHosts: number;
}

/** Number things by what is said of them, in the order in which they come. */
const numbered = (keys: readonly string[]): number[] => {
  const numbers = new Map<string, number>();
  return keys.map((key) => {
    const number = numbers.get(key) ?? numbers.size;
    numbers.set(key, number);
    return number;
  });
};

/**
 * Rounds after which every rank is taken for itself: where ranks differ by their distance from an end, each round finds
 * but one rank more.
 */
const mostRounds = 16;

const countOf = (colours: readonly number[]): number => new Set(colours).size;

/** How often each colour comes, in the order of colours. */
const tally = (colours: Iterable<number>): string => {
  const counts = new Map<number, number>();
  for (const colour of colours) counts.set(colour, (counts.get(colour) ?? 0) + 1);
  return [...counts]
    .sort(([a], [b]) => a - b)
    .map(([colour, count]) => `${colour}×${count}`)
    .join();
};

/**
 * Find ranks that cannot but do the same at the same times, by refining classes until they are stable: ranks of a class
 * have equal programs (and equal `marks`), their groups along each axis have equally many ranks of each class, and
 * their hosts equally many ranks of each class and groups of each class.
 *
 * Why that is enough: the times of a rank follow from its program and the ends of its collectives; those of a
 * collective from its members' starts, the queues of their streams, and how many flows its hosts carry. If all ranks of
 * each class agree up to some time, they agree on the next event, too.
 *
 * Cost: O(ranks · axes) per round; one or two rounds as a rule, and never more than `mostRounds`.
 *
 * @param marks by rank: what else sets ranks apart, such as a straggler's factor. Default: nothing.
 *
 * Source: colour refinement; its stable colouring is an equitable partition.
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

  let ofRank = numbered(programNumbers(programs).map((program, rank) => `${program} ${marks?.[rank] ?? 0}`));
  let ofGroup: number[];
  let ofHost: number[];
  for (let round = 0; ; round++) {
    const before = round < mostRounds ? ofRank : [...programs.keys()];
    const groupColours = numbered(
      groups.map(({ axis, ranks }) => `${axis} ${tally(ranks.map((rank) => before[rank]!))}`),
    );
    const hostColours = numbered(
      hosts.map(
        (ranks, host) =>
          `${tally(ranks.map((rank) => before[rank]!))} ${tally([...groupsOn[host]!].map((group) => groupColours[group]!))}`,
      ),
    );
    // Groups along all axes, in the order of axes, and the host.
    ofRank = numbered(
      before.map(
        (colour, rank) =>
          `${colour} ${groupsOf[rank]!.map((group) => groupColours[group]!).join()} ${hostColours[hostOf[rank]!]}`,
      ),
    );
    [ofGroup, ofHost] = [groupColours, hostColours];
    if (countOf(ofRank) === countOf(before)) break;
  }

  const firsts = (colours: readonly number[]): number[] => {
    const first: number[] = [];
    for (const [i, colour] of colours.entries()) first[colour] ??= i;
    return first;
  };
  const flowsOn = (host: number, colour: number): number => {
    let flows = 0;
    for (const group of groupsOn[host]!) if (ofGroup[group] === colour) flows++;
    return flows;
  };
  const numGroups = new Map<number, number>();
  for (const colour of ofGroup) numGroups.set(colour, (numGroups.get(colour) ?? 0) + 1);
  const firstHosts = firsts(ofHost);
  return {
    classOf: ofRank,
    ranks: firsts(ofRank).map((rank) => ({
      rank,
      groupOf: new Map(groupsOf[rank]!.map((group) => [groups[group]!.axis, ofGroup[group]!])),
    })),
    groups: firsts(ofGroup).map((group, colour) => ({
      ...groups[group]!,
      numGroups: numGroups.get(colour)!,
      members: [...new Set(groups[group]!.ranks.map((rank) => ofRank[rank]!))],
      hosts: [...new Set([...hostsUnder[group]!].map((host) => ofHost[host]!))].map((link) => ({
        link,
        flows: flowsOn(firstHosts[link]!, colour),
      })),
    })),
    numHosts: firstHosts.length,
  };
};
