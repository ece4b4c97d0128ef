import type { JobFile } from "../studies/job-file.ts";

/** A way to exchange gradients: when, in which messages, how compressed; as job files say it. */
export interface Method {
  readonly name: string;
  readonly job: JobFile;
  /** First steps that count in no median, where a plan is still sought in them. */
  readonly warmUpSteps?: number;
}

/** The method that others are set beside: all gradients in one message once all of them are ready. */
export const baseline = "bsp";

const oneBucket: JobFile = { kind: "fixed-size", bytes: 2 ** 30 };
/** Several buckets even of small models. */
const buckets: JobFile = { kind: "fixed-size", bytes: 2 ** 19 };
const topK: JobFile = { kind: "top-k", density: 0.01 };

/** Every method of this study. A key or kind that the trainer does not know becomes a row that says so. */
export const methods: readonly Method[] = [
  { name: baseline, job: { overlap: "none", buckets: oneBucket } },
  { name: "bsp-per-tensor", job: { overlap: "none", buckets: { kind: "per-tensor" } } },
  { name: "wait-free-per-tensor", job: { overlap: "wait-free", buckets: { kind: "per-tensor" } } },
  { name: "wait-free-512-kib", job: { overlap: "wait-free", buckets } },
  { name: "mg-wfbp-greedy", job: { overlap: "wait-free", buckets: { kind: "mg-wfbp", plan: "greedy" } } },
  { name: "mg-wfbp-exact", job: { overlap: "wait-free", buckets: { kind: "mg-wfbp", plan: "exact" } } },
  { name: "dear-512-kib", job: { overlap: "dear", buckets } },
  { name: "dear-tuned", job: { overlap: "dear", buckets: { kind: "tuned", trials: 8, stepsEach: 3 } }, warmUpSteps: 26 },
  {
    name: "byte-scheduler",
    job: {
      overlap: "wait-free",
      buckets: { kind: "per-tensor" },
      priorities: "forward",
      compression: { kind: "identity", chunkBytes: 2 ** 18 },
    },
  },
  { name: "wait-free-spread", job: { overlap: "wait-free", buckets, priorities: "spread" } },
  { name: "bsp-top-k", job: { overlap: "none", buckets: oneBucket, compression: topK } },
  { name: "wait-free-top-k", job: { overlap: "wait-free", buckets, compression: topK } },
  { name: "bsp-g-top-k", job: { overlap: "none", buckets: oneBucket, compression: { kind: "g-top-k", density: 0.01 } } },
  { name: "bsp-power-sgd", job: { overlap: "none", buckets: oneBucket, compression: { kind: "power-sgd", rank: 4 } } },
  { name: "wait-free-power-sgd", job: { overlap: "wait-free", buckets, compression: { kind: "power-sgd", rank: 4 } } },
  { name: "bsp-acp-sgd", job: { overlap: "none", buckets: oneBucket, compression: { kind: "acp-sgd", rank: 4 } } },
  { name: "wait-free-acp-sgd", job: { overlap: "wait-free", buckets, compression: { kind: "acp-sgd", rank: 4 } } },
  { name: "bsp-agoq", job: { overlap: "none", buckets: oneBucket, compression: { kind: "agoq" } } },
  { name: "dear-agoq", job: { overlap: "dear", buckets, compression: { kind: "agoq" } } },
];
