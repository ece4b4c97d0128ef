import type { JobFile } from "../studies/job-file.ts";

/** An optimizer and the hyperparameters to search. */
export interface Method {
  readonly name: string;
  /** Optimizer options as in job files. */
  readonly optimizer: JobFile;
  /** Middle of the searched learning rates, by task name. */
  readonly peaks: Readonly<Record<string, number>>;
  /** Option that the search varies in addition to the learning rate, and the two values to try. */
  readonly second: { readonly option: string; readonly values: readonly [number | string, number | string] };
  readonly note?: string;
  /**
   * Whether only step times are measured, because the method needs larger batches than these tasks have. Default:
   * false.
   */
  readonly onlyTimed?: boolean;
}

/** Name of the baseline method, with which all other methods are compared. */
export const baseline = "momentum";

const rates = (cnn: number, gpt: number, resnet: number): Method["peaks"] => ({
  "mnist-cnn": cnn,
  "moby-dick-gpt": gpt,
  "fashion-resnet": resnet,
});
const likeMomentum = rates(0.1, 0.3, 0.1);
const likeAdam = rates(0.002, 0.004, 0.003);
const damping: Method["second"] = { option: "damping", values: [0.3, 0.03] };
/**
 * Optimizer option that scales each preconditioned gradient to the norm of the original gradient, so that learning
 * rates are comparable with momentum.
 */
const asLong: JobFile = { size: "gradient-norm" };

export const methods: readonly Method[] = [
  {
    name: baseline,
    optimizer: { kind: "momentum" },
    peaks: likeMomentum,
    second: { option: "decay", values: [0.9, 0.95] },
  },
  {
    name: "adamw",
    optimizer: { kind: "adamw" },
    peaks: likeAdam,
    second: { option: "beta2", values: [0.999, 0.99] },
  },
  {
    name: "eva",
    optimizer: { kind: "eva", ...asLong },
    peaks: likeMomentum,
    // The sum contains products of two small means. On a GPT with a thousand positions per batch, a damping of 0.03
    // would dominate the sum.
    second: { option: "damping", values: [0.03, 0.00003] },
  },
  { name: "eva-f", optimizer: { kind: "eva-f", ...asLong }, peaks: likeMomentum, second: damping },
  {
    name: "eva-s",
    optimizer: { kind: "eva-s", ...asLong, variant: "product" },
    peaks: likeMomentum,
    second: damping,
  },
  {
    name: "eva-s-roots",
    optimizer: { kind: "eva-s", ...asLong, variant: "roots" },
    peaks: likeMomentum,
    second: damping,
  },
  {
    name: "kfac",
    optimizer: { kind: "kfac", ...asLong, factorEvery: 10, inverseEvery: 10, blockSize: 512 },
    peaks: likeMomentum,
    second: { option: "damping", values: [0.03, 0.003] },
    note: "inverses in blocks of at most 512 rows, anew every 10 steps",
  },
  {
    name: "kfac-eigen",
    optimizer: { kind: "kfac", ...asLong, inverse: "eigen", factorEvery: 10, inverseEvery: 10, blockSize: 512 },
    peaks: likeMomentum,
    second: { option: "damping", values: [0.3, 0.03] },
    note: "eigenvectors in blocks of at most 512 rows, anew every 10 steps",
  },
  {
    name: "shampoo",
    optimizer: { kind: "shampoo", rootsEvery: 10 },
    peaks: likeMomentum,
    second: { option: "secondMomentDecay", values: [1, 0.95] },
    note: "blocks of at most 128 rows, roots anew every 10 steps",
  },
  {
    name: "soap",
    optimizer: { kind: "soap", basesEvery: 10 },
    peaks: likeAdam,
    second: { option: "beta2", values: [0.95, 0.99] },
    note: "bases anew every 10 steps, none for sides of more than 1024",
  },
  {
    name: "muon",
    optimizer: { kind: "muon" },
    peaks: rates(0.01, 0.02, 0.02),
    second: { option: "adamShare", values: [0.1, 0.03] },
  },
  {
    name: "lars",
    optimizer: { kind: "lars", coefficient: 0.02 },
    peaks: rates(0.3, 1, 0.3),
    second: { option: "decay", values: [0.9, 0.95] },
    onlyTimed: true,
  },
  {
    name: "lamb",
    optimizer: { kind: "lamb" },
    peaks: rates(0.01, 0.01, 0.01),
    second: { option: "beta2", values: [0.999, 0.99] },
    onlyTimed: true,
  },
];
