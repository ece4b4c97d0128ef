import type { LinkCosts } from "@skein/collectives";
import { ArgumentError } from "@skein/tensor-core";
import type { HardwareFile } from "./hardware.ts";

/**
 * Tell what links a group of ranks has: as the file says, but where its hosts lie in several racks, a message between
 * hosts costs as much as one between racks. That is right for a ring, which goes no faster than its slowest link, and
 * for others the most that it can be.
 *
 * @throws ArgumentError where racks are named and the links between them are not: `parseHardwareFile` lets no such file
 * pass.
 */
export const linksOfGroup = (
  group: readonly number[],
  { topology, links }: Pick<HardwareFile, "topology" | "links">,
): LinkCosts => {
  const { ranksPerHost, hostsPerRack } = topology;
  if (hostsPerRack === undefined) return links;
  const rackOf = (rank: number): number => Math.floor(rank / (ranksPerHost * hostsPerRack));
  const [first, ...others] = group.map(rackOf);
  if (others.every((rack) => rack === first)) return links;
  if (links.betweenRacks === undefined)
    throw new ArgumentError(
      `hosts lie in racks of ${hostsPerRack}, but links.betweenRacks is not given; give it, or leave hostsPerRack out`,
    );
  return { ...links, across: links.betweenRacks };
};
