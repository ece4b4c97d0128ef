/** Job-file settings of a configuration, by key. */
export interface Settings {
  readonly [key: string]: unknown;
}

/** Settings of a job without compression. */
export const dense: Settings = { kind: "identity" };

/**
 * Compressions to try, dense first. The search does not predict the effect of compression on accuracy;
 * docs/algorithms.md lists the accuracy cost of each compression.
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

/** Values of `overlap` to try, except `dear`. */
export const overlaps = ["wait-free", "none"] as const;

/** Formats settings as values of `--set`. Each value is JSON, which is valid YAML. */
export const setOf = (settings: Settings): string[] =>
  Object.entries(settings).map(([key, value]) => `${key}=${JSON.stringify(value)}`);

/**
 * Returns the settings of a job that exchanges each gradient in a separate, uncompressed message. All other exchanges
 * are derived from this job.
 */
export const eachByItself = (overlap: "none" | "wait-free" | "dear"): string[] =>
  setOf({ compression: dense, overlap, buckets: { kind: "per-tensor" }, priorities: "none" });
