import type { Ordering } from "../studies/orderings-section.ts";

/** Speed claims of the methods' papers. Each claim compares two methods that this study runs. */
export const orderings: readonly Ordering[] = [
  {
    claim: "overlap beats none",
    source: "WFBP: Zhang et al. 2017, arXiv 1706.03292",
    faster: "wait-free-512-kib",
    slower: "bsp",
  },
  {
    claim: "merged buckets beat a message per tensor",
    source: "MG-WFBP: Shi et al. 2019, arXiv 1811.11141",
    faster: "mg-wfbp-greedy",
    slower: "wait-free-per-tensor",
  },
  {
    claim: "merged buckets beat one message at the end",
    source: "MG-WFBP: Shi et al. 2019, arXiv 1811.11141",
    faster: "mg-wfbp-greedy",
    slower: "bsp",
  },
  {
    claim: "the exact plan is no slower than the greedy one",
    source: "ours",
    orEven: true,
    faster: "mg-wfbp-exact",
    slower: "mg-wfbp-greedy",
  },
  {
    claim: "simultaneous collectives beat one after another",
    source: "ASC-WFBP: Shi et al. 2021, INFOCOM",
    faster: "asc",
    slower: "mg-wfbp-greedy",
  },
  {
    claim: "pieces with priorities beat a message per tensor",
    source: "ByteScheduler: Peng et al. 2019, SOSP",
    faster: "byte-scheduler",
    slower: "wait-free-per-tensor",
  },
  {
    claim: "all-reduce in halves beats whole, with equal buckets",
    source: "DeAR: Zhang et al. 2023, arXiv 2302.12445",
    faster: "dear-512-kib",
    slower: "wait-free-512-kib",
  },
  {
    claim: "all-reduce in halves beats MG-WFBP",
    source: "DeAR: Zhang et al. 2023, arXiv 2302.12445",
    faster: "dear-tuned",
    slower: "mg-wfbp-greedy",
  },
  {
    claim: "all-reduce in halves beats ByteScheduler",
    source: "DeAR: Zhang et al. 2023, arXiv 2302.12445",
    faster: "dear-tuned",
    slower: "byte-scheduler",
  },
  {
    claim: "a tuned bucket size beats a fixed one",
    source: "DeAR: Zhang et al. 2023, arXiv 2302.12445",
    faster: "dear-tuned",
    slower: "dear-512-kib",
  },
  { claim: "top-k beats dense", source: "Lin et al. 2018, arXiv 1712.01887", faster: "bsp-top-k", slower: "bsp" },
  {
    claim: "the tree beats all-gather",
    source: "gTop-k: Shi et al. 2019, arXiv 1901.04359",
    faster: "bsp-g-top-k",
    slower: "bsp-top-k",
  },
  {
    claim: "balanced sparse all-reduce beats all-gather",
    source: "Ok-Topk: Li and Hoefler 2022, arXiv 2201.07598",
    faster: "bsp-ok-top-k",
    slower: "bsp-top-k",
  },
  {
    claim: "Gaussian-k beats exact top-k",
    source: "Shi et al. 2019, arXiv 1911.08772",
    faster: "bsp-gaussian-k",
    slower: "bsp-top-k",
  },
  {
    claim: "MSTopK beats exact top-k",
    source: "Shi et al. 2021, arXiv 2010.10458",
    faster: "bsp-ms-top-k",
    slower: "bsp-top-k",
  },
  {
    claim: "layer-wise top-k with overlap beats top-k without",
    source: "LAGS: Shi et al. 2020, arXiv 1911.08727",
    faster: "wait-free-lags",
    slower: "bsp-top-k",
  },
  {
    claim: "low rank beats dense",
    source: "Power-SGD: Vogels et al. 2019, arXiv 1905.13727",
    faster: "bsp-power-sgd",
    slower: "bsp",
  },
  {
    claim: "one factor per step beats two",
    source: "ACP-SGD: Zhang et al. 2023, arXiv 2306.08881",
    faster: "bsp-acp-sgd",
    slower: "bsp-power-sgd",
  },
  {
    claim: "one factor per step gains from overlap",
    source: "ACP-SGD: Zhang et al. 2023, arXiv 2306.08881",
    faster: "wait-free-acp-sgd",
    slower: "bsp-acp-sgd",
  },
  { claim: "8-bit all-reduce beats 32-bit", source: "AGoQ: arXiv 2605.00539", faster: "bsp-agoq", slower: "bsp" },
];
