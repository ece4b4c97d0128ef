import type { JobFile } from "../studies/job-file.ts";

/** A way to exchange gradients: when, in which messages, how compressed; as job files say it. */
export interface Method {
  readonly name: string;
  readonly job: JobFile;
  /** First steps that count in no median, where a plan is still sought in them. */
  readonly warmUpSteps?: number;
  /** Numbers of ranks that it is run with. Default: all. */
  readonly ranks?: readonly number[];
}

/** The method that others are set beside: all gradients in one message once all of them are ready. */
export const baseline = "bsp";

const oneBucket: JobFile = { kind: "fixed-size", bytes: 2 ** 30 };
/** Several buckets even of small models. */
const buckets: JobFile = { kind: "fixed-size", bytes: 2 ** 19 };
/** Compressors at the settings of the convergence study, by name. */
const compressions: readonly (readonly [name: string, compression: JobFile, job?: JobFile])[] = [
  ["top-k", { kind: "top-k", density: 0.01 }],
  ["random-k", { kind: "random-k", density: 0.01 }],
  ["threshold", { kind: "threshold", threshold: 0.001, capacity: 0.01 }],
  ["gaussian-k", { kind: "gaussian-k", density: 0.01 }],
  ["ms-top-k", { kind: "ms-top-k", density: 0.01 }],
  ["dgc", { kind: "dgc", density: 0.01 }, { optimizer: { kind: "sgd" } }],
  ["ef21", { kind: "ef21", density: 0.01 }],
  ["g-top-k", { kind: "g-top-k", density: 0.01 }],
  ["hierarchical-top-k", { kind: "hierarchical-top-k", density: 0.01, ranksPerHost: 2 }],
  ["ok-top-k", { kind: "ok-top-k", density: 0.01 }],
  ["majority-vote", { kind: "majority-vote" }],
  ["scaled-sign", { kind: "scaled-sign", perTensor: true }],
  ["one-bit", { kind: "one-bit" }],
  ["qsgd", { kind: "qsgd" }],
  ["tern-grad", { kind: "tern-grad" }],
  ["eight-bit", { kind: "eight-bit" }],
  ["agoq", { kind: "agoq" }],
  ["power-sgd", { kind: "power-sgd", rank: 4 }],
  ["acp-sgd", { kind: "acp-sgd", rank: 4 }],
];

/** Those that are looked at with other numbers of ranks than four, too. */
const ofAllSizes = new Set(["top-k", "g-top-k", "agoq", "power-sgd", "acp-sgd"]);

/** Every method of this study. A key or kind that the trainer does not know becomes a row that says so. */
export const methods: readonly Method[] = [
  { name: baseline, job: { overlap: "none", buckets: oneBucket } },
  { name: "bsp-per-tensor", job: { overlap: "none", buckets: { kind: "per-tensor" } } },
  { name: "wait-free-per-tensor", job: { overlap: "wait-free", buckets: { kind: "per-tensor" } } },
  { name: "wait-free-512-kib", job: { overlap: "wait-free", buckets } },
  { name: "mg-wfbp-greedy", job: { overlap: "wait-free", buckets: { kind: "mg-wfbp", plan: "greedy" } } },
  { name: "mg-wfbp-exact", job: { overlap: "wait-free", buckets: { kind: "mg-wfbp", plan: "exact" } } },
  { name: "asc", job: { overlap: "wait-free", buckets: { kind: "mg-wfbp", plan: "simultaneous" }, priorities: "spread" } },
  { name: "dear-per-tensor", job: { overlap: "dear", buckets: { kind: "per-tensor" } } },
  { name: "dear-512-kib", job: { overlap: "dear", buckets } },
  { name: "dear-mg-wfbp", job: { overlap: "dear", buckets: { kind: "mg-wfbp" } } },
  { name: "dear-tuned", job: { overlap: "dear", buckets: { kind: "tuned", trials: 8, stepsEach: 4 } }, warmUpSteps: 38 },
  {
    name: "byte-scheduler",
    job: {
      overlap: "wait-free",
      buckets: { kind: "per-tensor" },
      priorities: "forward",
      compression: { kind: "identity", chunkBytes: 2 ** 18 },
    },
  },
  ...compressions.flatMap(([name, compression, job]): Method[] => [
    {
      name: `bsp-${name}`,
      job: { ...job, overlap: "none", buckets: oneBucket, compression },
      ...(!ofAllSizes.has(name) && { ranks: [4] }),
    },
    {
      name: `wait-free-${name}`,
      job: { ...job, overlap: "wait-free", buckets, compression },
      ...(!ofAllSizes.has(name) && { ranks: [4] }),
    },
  ]),
  { name: "wait-free-lags", job: { overlap: "wait-free", buckets: { kind: "per-tensor" }, compression: { kind: "lags" } }, ranks: [4] },
  { name: "dear-agoq", job: { overlap: "dear", buckets, compression: { kind: "agoq" } } },
];
