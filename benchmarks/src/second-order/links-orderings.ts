import type { Ordering } from "../studies/orderings-section.ts";

const source = "SPD-KFAC: Shi, Zhang and Li 2021, arXiv 2107.06533";

/** What the paper of SPD-KFAC says of pairs that this study runs. */
export const linksOrderings: readonly Ordering[] = [
  {
    claim: "one message after all factors beats a message per factor behind computing",
    source,
    faster: "spd-together",
    slower: "spd-per-factor",
  },
  { claim: "planned messages beat one after all factors", source, faster: "spd", slower: "spd-together" },
  { claim: "planned messages beat those of a size", source, faster: "spd", slower: "spd-4-mib" },
  { claim: "planned messages beat one per factor", source, faster: "spd", slower: "spd-per-factor" },
  { claim: "balanced inverses beat those that all ranks make", source, faster: "spd", slower: "d" },
  { claim: "balanced inverses beat those in turn", source, faster: "spd", slower: "mpd" },
  {
    claim: "what measurements choose is no slower than the balanced form",
    source: "ours",
    faster: "auto",
    slower: "spd",
    orEven: true,
  },
];
