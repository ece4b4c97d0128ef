import type { Summary } from "@skein/measuring";
import type { ExpertFigures } from "./expert-figures.ts";

/** What a run of the trainer came to. */
export type Outcome =
  | ({ readonly kind: "done" } & Figures)
  /** A loss or gradient that is not finite. */
  | { readonly kind: "diverged"; readonly reason: string }
  /** A job that the trainer does not take. */
  | { readonly kind: "refused"; readonly reason: string }
  | { readonly kind: "failed"; readonly reason: string }
  | { readonly kind: "too-long"; readonly reason: string };

export interface Figures {
  readonly testLoss: number;
  /** Right answers, 0 to 1; classifiers. */
  readonly testAccuracy?: number;
  /** Language models of bytes. */
  readonly bitsPerByte?: number;
  readonly steps: number;
  readonly batch: number;
  /** Payload bytes per step, of the rank that sent most. */
  readonly bytesSentPerStep: number;
  /** What a dense ring all-reduce of the gradients sends. */
  readonly denseBytesPerStep: number;
  readonly stepSeconds: Summary;
  /** Of a run with a cycle: what a step takes in the mean over one. */
  readonly cycleSeconds?: Summary;
  /** Of a run with stages: what each takes of a step, mean of the ranks, in the mean over a cycle. */
  readonly stageSeconds?: Readonly<Record<string, Summary>>;
  /** Who does what of K-FAC, where the trainer has chosen that by its measurements: `pad 0.5`. */
  readonly form?: string;
  /** Of a step, what rank 0 spent waiting for collectives; where the trainer says it. */
  readonly exposedSeconds?: Summary;
  /** Of a model with experts. */
  readonly experts?: ExpertFigures;
  readonly peakMemoryBytes: number;
}
