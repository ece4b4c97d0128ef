import type { Topology } from "./hardware.ts";

/**
 * Groups the members of a rank group by host: rank r is on host ⌊r / ranksPerHost⌋.
 *
 * @returns indices into `group`, one list per host.
 * @example
 * ```ts
 * console.log(hostsOfGroup([0, 1, 2, 3], { ranksPerHost: 2 })); // [[0, 1], [2, 3]]
 * ```
 */
export const hostsOfGroup = (
  group: readonly number[],
  { ranksPerHost }: Pick<Topology, "ranksPerHost">,
): number[][] => [...Map.groupBy(group.keys(), (index) => Math.floor(group[index]! / ranksPerHost)).values()];
