import type { JobFile } from "../studies/job-file.ts";

/**
 * Method to exchange gradients, described by job-file options: when gradients are sent, how they are grouped into
 * messages, and how they are compressed.
 */
export interface Method {
  readonly name: string;
  /** Setting of the convergence study that supplies compression, optimizer and learning rate. Default: dense. */
  readonly setting?: string;
  /**
   * Job options that determine when gradients are sent, and how they are grouped into messages. These options do not
   * overlap with the options of a compression setting.
   */
  readonly job: JobFile;
  /**
   * Number of steps at the start of a run that are excluded from medians, for methods that choose a plan in these
   * steps.
   */
  readonly warmUpSteps?: number;
  /** Rank counts to run the method with. Default: all. */
  readonly ranks?: readonly number[];
}

/**
 * Name of the baseline method, with which all other methods are compared. It sends all gradients in one message after
 * the backward pass.
 */
export const baseline = "bsp";

const oneBucket: JobFile = { kind: "fixed-size", bytes: 2 ** 30 };
/** Bucket size that splits even small models into several buckets. */
const buckets: JobFile = { kind: "fixed-size", bytes: 2 ** 19 };
/** Names of settings in the convergence study, which supply compression, optimizer and learning rate. */
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

/** Compression settings that are run with all rank counts. Other settings run with four ranks only. */
const ofAllSizes = new Set(["top-k", "g-top-k", "agoq", "power-sgd", "acp-sgd"]);

/** All methods of this study. A key or kind that the trainer does not know becomes a row with its error. */
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
