import type { Axes } from "./world.ts";

/**
 * Groups of ranks for two axes: consecutive ranks of one host along "inside", ranks with the same index on their hosts
 * along "across".
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
