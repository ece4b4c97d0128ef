import { summarize } from "@skein/measuring";
import type { Times } from "@skein/report";

/** Sum up what was measured over steps by each of several ranks: of the rank whose median is greatest, since the others wait for it. */
export const slowest = (byRank: readonly (readonly number[])[]): Times =>
  byRank.map(summarize).reduce((worst, next) => (next.median > worst.median ? next : worst));
