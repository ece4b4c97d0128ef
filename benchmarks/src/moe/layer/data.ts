// Read as the text of a module of a job, so it imports nothing by a path.
import { arrayRecords, type Records } from "@skein/data";
import { NdArray } from "@skein/tensor-core";

export interface LayerDataOptions {
  readonly samples: number;
  /** Number of tokens per sample. */
  readonly tokens: number;
  readonly width: number;
  readonly numExperts: number;
  readonly topK: number;
  /** `skewed`: the probability of expert e is proportional to 1 / (1 + e). */
  readonly routing: "uniform" | "skewed";
}

/** Returns a generator of uniform numbers in (0, 1) that are the same in every run (32-bit xorshift). */
const uniformNumbers = (): (() => number) => {
  let state = 0x9e3779b9;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return ((state >>> 0) + 0.5) / 2 ** 32;
  };
};

/**
 * Returns random tokens as inputs, and for each token `topK` different experts as labels. The experts are drawn with
 * the probabilities of `routing`.
 */
export const toldTokens = ({
  samples,
  tokens,
  width,
  numExperts,
  topK,
  routing,
}: LayerDataOptions): { readonly train: Records; readonly test: Records; readonly predicts: "values" } => {
  const next = uniformNumbers();
  const inputs = Float32Array.from({ length: samples * tokens * width }, () => 2 * next() - 1);
  const choices = new Int32Array(samples * tokens * topK);
  for (let token = 0; token < samples * tokens; token++) {
    // The least of exponential times whose rates are the popularities: those that come first are the draws.
    const times = Array.from({ length: numExperts }, (_, expert) => ({
      expert,
      time: -Math.log(next()) * (routing === "skewed" ? 1 + expert : 1),
    }));
    const first = times.toSorted((a, b) => a.time - b.time).slice(0, topK);
    for (const [k, { expert }] of first.entries()) choices[token * topK + k] = expert;
  }
  const records = arrayRecords({
    inputs: NdArray.from(inputs, [samples, tokens, width]),
    labels: NdArray.from(choices, [samples, tokens, topK], "i32"),
  });
  return { train: records, test: records, predicts: "values" };
};
