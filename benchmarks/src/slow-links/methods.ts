import type { JobFile } from "../studies/job-file.ts";

/** A way to exchange gradients: when, in which messages, how compressed; as job files say it. */
export interface Method {
  readonly name: string;
  /** The setting of the convergence study whose compression, optimizer and learning rate it takes. Default: dense. */
  readonly setting?: string;
  /** When and in which messages: nothing that a setting says. */
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
/** Settings of the convergence study, by name: options, optimizer and learning rate come from there. */
const compressed: readonly string[] = [
  "top-k",
  "random-k",
  "threshold",
  "gaussian-k",
  "ms-top-k",
  "dgc",
  "ef21",
  "g-top-k",
  "hierarchical-top-k",
  "ok-top-k",
  "majority-vote",
  "scaled-sign",
  "one-bit",
  "qsgd",
  "tern-grad",
  "eight-bit",
  "agoq",
  "power-sgd",
  "acp-sgd",
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
  {
    name: "asc",
    job: { overlap: "wait-free", buckets: { kind: "mg-wfbp", plan: "simultaneous" }, priorities: "spread" },
  },
  { name: "dear-per-tensor", job: { overlap: "dear", buckets: { kind: "per-tensor" } } },
  { name: "dear-512-kib", job: { overlap: "dear", buckets } },
  { name: "dear-mg-wfbp", job: { overlap: "dear", buckets: { kind: "mg-wfbp" } } },
  {
    name: "dear-tuned",
    job: { overlap: "dear", buckets: { kind: "tuned", trials: 8, stepsEach: 4 } },
    warmUpSteps: 38,
  },
  {
    name: "byte-scheduler",
    job: {
      overlap: "wait-free",
      buckets: { kind: "per-tensor" },
      priorities: "forward",
      compression: { kind: "identity", chunkBytes: 2 ** 18 }, // pieces of the same dense gradients
    },
  },
  ...compressed.flatMap((setting): Method[] => {
    const ranks = ofAllSizes.has(setting) ? {} : { ranks: [4] };
    return [
      { name: `bsp-${setting}`, setting, job: { overlap: "none", buckets: oneBucket }, ...ranks },
      { name: `wait-free-${setting}`, setting, job: { overlap: "wait-free", buckets }, ...ranks },
    ];
  }),
  {
    name: "wait-free-lags",
    setting: "lags",
    job: { overlap: "wait-free", buckets: { kind: "per-tensor" } },
    ranks: [4],
  },
  { name: "dear-agoq", setting: "agoq", job: { overlap: "dear", buckets } },
];
