import { hostname } from "node:os";
import type { SavedFile } from "@skein/checkpoints/node";
import { describeError } from "@skein/cli/node";
import type { DataPosition, PlacedLane } from "@skein/data";
import type { DamagedImage } from "@skein/data/node";
import type { ParameterHistograms } from "@skein/report";
import type { BestSoFar, MovedLayer, RoutingJson, SampleOutput } from "@skein/run-files/node";
import type { EvaluationSums, ExchangePlan, StepFigures, UpdateFigures } from "@skein/step/node";
import type { Span } from "@skein/tensor-core";
import type { RankMessage } from "./messages.ts";
import { residentBytes } from "./resident-bytes.ts";
import type { StepCosts } from "./step-meter.ts";

/** Maximum number of spans per message. All spans of a long trace would exceed the message size limit. */
const spansPerMessage = 10_000;

/**
 * Maximum number of parameters per message. The histograms of a parameter take some kilobytes, and messages have a size
 * limit.
 */
const parametersPerMessage = 200;

/** Number of steps over which a rank averages its step time. */
const stepsOfPace = 20;

/**
 * Sends messages of one rank to the controller of the run. Values that are equal on all ranks are sent only by rank 0.
 */
export class RankReport {
  private readonly rank: number;
  private readonly worldSize: number;
  private pace = { steps: 0, seconds: 0, ownSeconds: 0 };
  private readonly post: (message: RankMessage) => void;

  constructor(rank: number, worldSize: number, post: (message: RankMessage) => void) {
    this.rank = rank;
    this.worldSize = worldSize;
    this.post = post;
  }

  planned(agreed: { readonly plan: ExchangePlan; readonly remark: string }): void {
    this.postOnce({ type: "planned", ...agreed });
  }

  /**
   * Reports the mean duration of the last `stepsOfPace` steps, and the mean time without waiting. All ranks wait for
   * each other, so their steps take equally long; the slowest rank is the rank that waits least.
   */
  private paced(step: number, { seconds, exposedSeconds }: StepCosts): void {
    if (this.worldSize === 1) return;
    this.pace.seconds += seconds;
    this.pace.ownSeconds += seconds - exposedSeconds;
    if (++this.pace.steps < stepsOfPace) return;
    const { steps, seconds: sum, ownSeconds } = this.pace;
    this.pace = { steps: 0, seconds: 0, ownSeconds: 0 };
    this.post({ type: "paced", step, seconds: sum / steps, ownSeconds: ownSeconds / steps });
  }

  stepped(step: number, { epoch }: DataPosition, figures: StepFigures, costs: StepCosts): void {
    this.postOnce({
      type: "step",
      step,
      epoch: epoch + 1,
      residentBytes: residentBytes(),
      ...figures,
      ...costs,
    });
    this.paced(step, costs);
  }

  /**
   * Reports the metrics of the update of step `step`, if the update was applied after this step: during the next step,
   * or before the state was evaluated or saved.
   */
  updated(step: number, update: UpdateFigures): void {
    this.postOnce({ type: "updated", step, ...update });
  }

  evaluated(step: number, sums: EvaluationSums, seconds: number, best?: BestSoFar): void {
    this.post({ type: "evaluated", step, sums, seconds, ...(this.rank === 0 && best !== undefined && { best }) });
  }

  sampled(step: number, samples: readonly SampleOutput[]): void {
    this.post({ type: "sampled", step, samples });
  }

  saved(step: number, files: readonly SavedFile[], lanes?: readonly PlacedLane[]): void {
    this.post({ type: "saved", step, files, ...(lanes && { lanes }) });
  }

  /** Reports experts that were moved after a step. */
  moved(step: number, layers: readonly MovedLayer[], seconds: number): void {
    this.postOnce({ type: "moved", step, layers, seconds });
  }

  /** Reports the experts chosen by tokens in a step. */
  routed(step: number, layers: Readonly<Record<string, RoutingJson>>): void {
    this.postOnce({ type: "routed", step, layers });
  }

  /** Reports histograms of all parameters after a step. */
  histograms(step: number, parameters: readonly ParameterHistograms[]): void {
    for (let first = 0; first < parameters.length; first += parametersPerMessage)
      this.postOnce({
        type: "histograms",
        step,
        parameters: parameters.slice(first, first + parametersPerMessage),
        isLast: first + parametersPerMessage >= parameters.length,
      });
  }

  /**
   * Reports a remark for the user. @param isOwn Whether the remark concerns only this rank. If false, only rank 0 sends
   * the remark.
   */
  remark(text: string, isOwn = false): void {
    if (isOwn) this.post({ type: "remark", text });
    else this.postOnce({ type: "remark", text });
  }

  /** Reports a sample that could not be decoded, and was skipped or replaced by another image. */
  damaged(image: DamagedImage): void {
    this.post({ type: "damaged", image });
  }

  /**
   * Requests that the run ends after a step that all ranks complete and save, because this rank lacks samples or
   * resources to continue.
   */
  cutShort(error: unknown): void {
    this.post({ type: "cut-short", error: describeError(error) });
  }

  done(step: number, bytesSent: number, spans: readonly Span[]): void {
    for (let first = 0; first < spans.length; first += spansPerMessage)
      this.post({ type: "spans", spans: spans.slice(first, first + spansPerMessage) });
    this.post({
      type: "done",
      step,
      bytesSent,
      process: `${hostname()}:${process.pid}`,
      peakMemoryBytes: process.resourceUsage().maxRSS * 1024,
    });
  }

  private postOnce(message: RankMessage): void {
    if (this.rank === 0) this.post(message);
  }
}
