import type { LinkCosts, LinkTimes } from "@skein/collectives";
import { ArgumentError } from "@skein/tensor-core";
import { grownSecondsPerByte } from "../network-growth.ts";
import type { HardwareFile } from "./hardware.ts";
import { hostsOfGroup } from "./hosts-of-group.ts";

/**
 * Computes the link costs of a group of ranks from a hardware file. If the group's hosts are in several racks, messages
 * between hosts cost as much as messages between racks. This is exact for a ring, whose slowest link decides, and an
 * upper bound for other algorithms. If the file has a growth, seconds per byte between hosts grow with the number of
 * hosts in the group.
 *
 * @throws ArgumentError if racks are given without the links between racks; `parseHardwareFile` rejects such files.
 * @example
 * ```ts
 * const hardware = hardwareNamed("hkbu-2080ti-10gbe");
 * console.log(linksOfGroup([0, 1, 2, 3, 4, 5, 6, 7], hardware).across.secondsPerByte > 0); // true
 * ```
 */
export const linksOfGroup = (
  group: readonly number[],
  { topology, links }: Pick<HardwareFile, "topology" | "links">,
): LinkCosts => {
  const across = slowestBetweenHosts(group, { topology, links });
  const { growth } = links;
  if (growth === undefined) return across === links.across ? links : { ...links, across };
  const numHosts = hostsOfGroup(group, topology).length;
  return {
    ...links,
    across: { ...across, secondsPerByte: grownSecondsPerByte(across.secondsPerByte, growth, numHosts) },
  };
};

/** Returns the costs between the hosts of a group: the costs between racks if the hosts are in several racks. */
const slowestBetweenHosts = (
  group: readonly number[],
  { topology, links }: Pick<HardwareFile, "topology" | "links">,
): LinkTimes => {
  const { ranksPerHost, hostsPerRack } = topology;
  if (hostsPerRack === undefined) return links.across;
  const rackOf = (rank: number): number => Math.floor(rank / (ranksPerHost * hostsPerRack));
  const [first, ...others] = group.map(rackOf);
  if (others.every((rack) => rack === first)) return links.across;
  if (links.betweenRacks === undefined)
    throw new ArgumentError(
      `hostsPerRack is ${hostsPerRack}, but links.betweenRacks is missing; add links.betweenRacks, or leave hostsPerRack out`,
    );
  return links.betweenRacks;
};
