import type { Axes } from "./world.ts";

/** Ranks of one host one after another along "inside"; those with the same place on their hosts along "across". */
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
