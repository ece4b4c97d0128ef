import type { Axes } from "./world.ts";

/**
 * Returns the groups of ranks for two mesh axes. Along "inside": the consecutive ranks of one host. Along "across": the
 * ranks with the same index on their hosts.
 */
export const hostAxes = (ranksPerHost: number, numHosts: number): Axes => ({
  mesh: { inside: ranksPerHost, across: numHosts },
  groups: {
    inside: Array.from({ length: numHosts }, (_, host) =>
      Array.from({ length: ranksPerHost }, (__, i) => host * ranksPerHost + i),
    ),
    across: Array.from({ length: ranksPerHost }, (_, i) =>
      Array.from({ length: numHosts }, (__, host) => host * ranksPerHost + i),
    ),
  },
});
