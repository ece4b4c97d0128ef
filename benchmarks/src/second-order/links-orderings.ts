import type { Ordering } from "../studies/orderings-section.ts";

const source = "SPD-KFAC: Shi, Zhang and Li 2021, arXiv 2107.06533";

/** Speed claims of the SPD-KFAC paper. Each claim compares two methods that this study runs. */
export const linksOrderings: readonly Ordering[] = [
  {
    claim: "one message after all factors beats a message per factor behind computing",
    source,
    faster: "mpd-together",
    slower: "mpd-per-factor",
  },
  { claim: "planned messages beat one after all factors", source, faster: "mpd-planned", slower: "mpd-together" },
  { claim: "planned messages beat those of a size", source, faster: "mpd-planned", slower: "mpd" },
  { claim: "planned messages beat one per factor", source, faster: "mpd-planned", slower: "mpd-per-factor" },
  { claim: "balanced inverses beat those that all ranks make", source, faster: "spd", slower: "d" },
  { claim: "balanced inverses beat those in turn", source, faster: "spd", slower: "mpd-planned" },
  {
    claim: "what measurements choose is no slower than the balanced form",
    source: "ours",
    faster: "auto",
    slower: "spd",
    orEven: true,
  },
];
