import type { Summary } from "@skein/measuring";
import type { ExpertFigures } from "./expert-figures.ts";

/** Outcome of a training run. */
export type Outcome =
  | ({ readonly kind: "done" } & Figures)
  /** A loss or gradient became infinite or NaN. */
  | { readonly kind: "diverged"; readonly reason: string }
  /** The trainer rejected the job. */
  | { readonly kind: "refused"; readonly reason: string }
  | { readonly kind: "failed"; readonly reason: string }
  | { readonly kind: "too-long"; readonly reason: string };

export interface Figures {
  readonly testLoss: number;
  /** Fraction of correct answers, 0 to 1; classifiers only. */
  readonly testAccuracy?: number;
  /** Bits per byte. Only for byte-level language models. */
  readonly bitsPerByte?: number;
  readonly steps: number;
  readonly batch: number;
  /** Payload bytes sent per step by the rank that sends most. */
  readonly bytesSentPerStep: number;
  /** Bytes sent per step and rank by a dense ring all-reduce of the gradients. */
  readonly denseBytesPerStep: number;
  readonly stepSeconds: Summary;
  /** Mean seconds per step over a cycle. Absent: the run has no cycle. */
  readonly cycleSeconds?: Summary;
  /** Seconds per step of each stage, averaged over ranks and over a cycle. Absent: the run has no stages. */
  readonly stageSeconds?: Readonly<Record<string, Summary>>;
  /**
   * Variant of K-FAC that the trainer chose by its measurements, such as `pad 0.5`. Absent: the trainer did not choose.
   */
  readonly form?: string;
  /** Seconds per step in which rank 0 waited for collectives. Absent: the trainer does not report this time. */
  readonly exposedSeconds?: Summary;
  /** Statistics of expert layers. Absent: the model has no experts. */
  readonly experts?: ExpertFigures;
  readonly peakMemoryBytes: number;
}
