/** Job settings to try together, by key. */
export interface Settings {
  readonly [key: string]: unknown;
}

/** No compression. */
export const dense: Settings = { kind: "identity" };

/**
 * Compressions to try, dense first. Whether a model still learns with a compression, only a run can show;
 * docs/algorithms.md lists the accuracy cost of each.
 */
export const compressions: readonly Settings[] = [
  dense,
  { kind: "top-k", density: 0.01 },
  { kind: "top-k", density: 0.001 },
  { kind: "ms-top-k", density: 0.01 },
  { kind: "g-top-k", density: 0.01 },
  { kind: "lags" },
  { kind: "qsgd", levels: 127 },
  { kind: "qsgd", levels: 7 },
  { kind: "tern-grad" },
  { kind: "eight-bit" },
  { kind: "agoq" },
  { kind: "scaled-sign", momentum: 0.9 },
  { kind: "one-bit", momentum: 0.9 },
  { kind: "majority-vote", momentum: 0.9 },
  { kind: "power-sgd", rank: 2 },
  { kind: "power-sgd", rank: 4 },
  { kind: "acp-sgd", rank: 2 },
  { kind: "acp-sgd", rank: 4 },
];

/** When messages travel, except for steps in halves. */
export const overlaps = ["wait-free", "none"] as const;

/** Settings as values of `--set`. The values are JSON, which is valid YAML. */
export const setOf = (settings: Settings): string[] =>
  Object.entries(settings).map(([key, value]) => `${key}=${JSON.stringify(value)}`);

/**
 * Settings that make a job exchange each gradient by itself, dense. All other ways to exchange are derived from such a
 * job.
 */
export const eachByItself = (overlap: "none" | "wait-free" | "dear"): string[] =>
  setOf({ compression: dense, overlap, buckets: { kind: "per-tensor" }, priorities: "none" });
