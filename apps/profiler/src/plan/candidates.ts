/** Settings of a job that are looked at together, by key. */
export interface Settings {
  readonly [key: string]: unknown;
}

/** Ways to compress that `docs/algorithms.md` advises somewhere, dense first. Whether a model learns with one is for a run to show. */
export const compressions: readonly Settings[] = [
  { kind: "identity" },
  { kind: "top-k", density: 0.01 },
  { kind: "ms-top-k", density: 0.01 },
  { kind: "qsgd", levels: 127 },
  { kind: "eight-bit" },
  { kind: "agoq" },
  { kind: "scaled-sign", momentum: 0.9 },
  { kind: "power-sgd", rank: 4 },
  { kind: "acp-sgd", rank: 4 },
];

/** Buckets that a step in halves is tried with; it cannot be made of the whole one, so each is traced. */
export const deferredBuckets: readonly Settings[] = [
  { kind: "fixed-size", bytes: 2 ** 18 },
  { kind: "fixed-size", bytes: 2 ** 20 },
  { kind: "fixed-size", bytes: 2 ** 22 },
];

/** The value of a `--set`: JSON is YAML. */
export const setOf = (settings: Settings): string[] => Object.entries(settings).map(([key, value]) => `${key}=${JSON.stringify(value)}`);
