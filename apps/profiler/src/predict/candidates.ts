/** Settings of a job that are looked at together, by key. */
export interface Settings {
  readonly [key: string]: unknown;
}

/** The gradient as it is. */
export const dense: Settings = { kind: "identity" };

/**
 * Ways to compress, dense first. Whether a model learns with one is for a run to show: docs/algorithms.md says what
 * each has cost.
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

/** When messages travel, where it is not in halves. */
export const overlaps = ["wait-free", "none"] as const;

/** The value of a `--set`: JSON is YAML. */
export const setOf = (settings: Settings): string[] =>
  Object.entries(settings).map(([key, value]) => `${key}=${JSON.stringify(value)}`);

/**
 * What makes of a job one that exchanges each gradient by itself, dense: what all other ways to exchange are made of.
 */
export const eachByItself = (overlap: "none" | "wait-free" | "dear"): string[] =>
  setOf({ compression: dense, overlap, buckets: { kind: "per-tensor" }, priorities: "none" });
