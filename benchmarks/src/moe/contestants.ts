import { type JobFile, layJobs } from "../studies/job-file.ts";

/** Variant of a GPT to train, dense or with experts. */
export interface Contestant {
  readonly name: string;
  /** `model.experts` of the job. Absent: the dense model. */
  readonly experts?: JobFile;
  readonly note: string;
  /**
   * Whether the prediction of a byte depends only on earlier bytes. If an expert chooses among all tokens of a batch,
   * or receives a mixture of tokens, later bytes influence the prediction: a lower loss then does not mean a better
   * model.
   */
  readonly isCausal: boolean;
}

export const dense = "dense";

/** Eight experts in each block. A token goes to two experts, each half as wide as the dense feed-forward part. */
const common: JobFile = { count: 8, topK: 2, every: 1, capacity: 1.25, dispatch: "dense" };

const gate = (name: string, note: string, { isCausal = true, ...own }: JobFile & { isCausal?: boolean } = {}) => ({
  name,
  experts: layJobs(common, { gate: name }, own),
  note,
  isCausal,
});

/** Gate that is trained with several expert capacities; other gates use the default capacity. */
const byCapacity = "noisy-top-k";

/**
 * Variants of the GPT to compare: the dense model, each gate at the trainer's default capacity, and one gate at other
 * capacities.
 */
export const contestants: readonly Contestant[] = [
  { name: dense, note: "feed-forward parts of four times the width", isCausal: true },
  gate("noisy-top-k", "two of eight, by scores with noise"),
  gate("switch", "one of eight, as wide as the dense part", { topK: 1 }),
  gate("sigmoid", "two of eight, weights are sigmoids"),
  gate("cosine", "two of eight, by cosines"),
  gate("balancing-bias", "two of eight, biases follow the loads, no auxiliary loss", { balanceLoss: 0 }),
  gate("sinkhorn", "two of eight, balanced by Sinkhorn while training", { balanceLoss: 0 }),
  gate("expert-choice", "experts choose tokens, also by later ones", { balanceLoss: 0, isCausal: false }),
  gate("soft", "experts get mixtures of all tokens, later ones too", { balanceLoss: 0, isCausal: false }),
  ...[
    { name: "capacity-1", capacity: 1, note: "room for an even load" },
    { name: "capacity-2", capacity: 2, note: "room for twice an even load" },
    { name: "dropless", capacity: "all", dispatch: "ragged", note: "room for all" },
  ].map(({ name, note, ...own }) => ({
    name: `${byCapacity}-${name}`,
    experts: layJobs(common, { gate: byCapacity }, own),
    note,
    isCausal: true,
  })),
];

const steps = 800;

/** GPT with 2 layers of width 64 on the bytes of Moby-Dick, as in the convergence study. */
const task: JobFile = {
  name: "moe",
  ranks: 1,
  threads: 1,
  backend: "cpu",
  batch: 16,
  steps,
  data: { kind: "moby-dick", window: 64, testFraction: 0.05 },
  optimizer: { kind: "adamw", beta2: 0.99, weightDecay: 0.1 },
  clipNorm: 1,
  compression: { kind: "identity" },
  evaluation: { batch: 128 },
};

/** Returns the job of a variant at a learning rate. */
export const jobOf = ({ experts }: Contestant, peak: number): JobFile =>
  layJobs(task, {
    model: { kind: "gpt", layers: 2, heads: 4, width: 64, ...(experts && { experts }) },
    learningRate: { peak, warmupSteps: 100, decay: "cosine", final: peak / 10 },
  });

/** Job options that override a job in a quick run, which shows only whether the job runs. */
export const quickJob: JobFile = { steps: 4, data: { kind: "moby-dick", window: 64, testSamples: 128 } };

/** Expected seconds of a run on one core, used only to estimate how long a study takes. */
export const expectedSeconds = 30;
