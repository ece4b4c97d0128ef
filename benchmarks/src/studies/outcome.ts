import type { Summary } from "@skein/measuring";
import type { ExpertFigures } from "./expert-figures.ts";

/** Outcome of a run of the trainer. */
export type Outcome =
  | ({ readonly kind: "done" } & Figures)
  /** A loss or gradient is not finite. */
  | { readonly kind: "diverged"; readonly reason: string }
  /** The trainer rejects the job. */
  | { readonly kind: "refused"; readonly reason: string }
  | { readonly kind: "failed"; readonly reason: string }
  | { readonly kind: "too-long"; readonly reason: string };

export interface Figures {
  readonly testLoss: number;
  /** Fraction of right answers, 0 to 1; classifiers only. */
  readonly testAccuracy?: number;
  /** Bits per byte; language models of bytes only. */
  readonly bitsPerByte?: number;
  readonly steps: number;
  readonly batch: number;
  /** Payload bytes per step of the rank that sends most. */
  readonly bytesSentPerStep: number;
  /** Bytes per step that a dense ring all-reduce of the gradients sends. */
  readonly denseBytesPerStep: number;
  readonly stepSeconds: Summary;
  /** Mean time of a step over a cycle, for a run with a cycle. */
  readonly cycleSeconds?: Summary;
  /** Time of each stage per step, for a run with stages: mean of the ranks and mean over a cycle. */
  readonly stageSeconds?: Readonly<Record<string, Summary>>;
  /** Form of K-FAC, if the trainer chose the form by its measurements: `pad 0.5`. */
  readonly form?: string;
  /** Time per step that rank 0 waited for collectives, if the trainer reports this time. */
  readonly exposedSeconds?: Summary;
  /** Statistics of expert layers, for a model with experts. */
  readonly experts?: ExpertFigures;
  readonly peakMemoryBytes: number;
}
