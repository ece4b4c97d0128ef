import type { Topology } from "./hardware.ts";

/**
 * Tell which members of a group share a host: rank r lies on host ⌊r / ranksPerHost⌋.
 *
 * @returns their places in the group, by host.
 */
export const hostsOfGroup = (
  group: readonly number[],
  { ranksPerHost }: Pick<Topology, "ranksPerHost">,
): number[][] => [...Map.groupBy(group.keys(), (place) => Math.floor(group[place]! / ranksPerHost)).values()];
