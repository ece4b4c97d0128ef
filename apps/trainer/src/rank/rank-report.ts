import { hostname } from "node:os";
import type { DataPosition, PlacedLane } from "@skein/data";
import type { DamagedImage } from "@skein/data/node";
import type { ParameterHistograms } from "@skein/report";
import type { Span } from "@skein/tensor-core";
import type { SavedFile } from "../checkpoint/checkpoint-part.ts";
import type { BestSoFar } from "../evaluation/best-so-far.ts";
import { describeError } from "../errors.ts";
import type { EvaluationSums } from "../evaluation/evaluation-sums.ts";
import type { StepFigures } from "../step/live-state.ts";
import type { RankMessage } from "./messages.ts";
import type { RoutingJson } from "../run-files/routing-file.ts";
import type { MovedLayer } from "../run-files/moved-layer.ts";
import type { ExchangePlan } from "../plans/exchange-plan.ts";
import type { SampleOutput } from "../samples/sample-outputs.ts";
import { residentBytes } from "./resident-bytes.ts";
import type { StepCosts } from "./step-meter.ts";
import type { UpdateFigures } from "../step/update-figures.ts";

/** Spans of one message: a trace of many steps is larger than a message may be. */
const spansAtOnce = 10_000;

/** Parameters of one message, likewise: each has some kilobytes. */
const parametersAtOnce = 200;

/** Of so many steps a rank tells the mean. */
const stepsOfPace = 20;

/** What a rank tells the controller of the run. Of what all ranks know alike, rank 0 speaks. */
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
   * What every rank tells of its own pace, in a message each so many steps: where all wait for one another, their steps
   * take equally long, and the one that is waited for is known by what it does not wait.
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

  /** The update of a step was made after it: in the next one, or when the state was settled. */
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

  /** Experts were moved after a step. */
  moved(step: number, layers: readonly MovedLayer[], seconds: number): void {
    this.postOnce({ type: "moved", step, layers, seconds });
  }

  /** Which experts tokens chose in a step. */
  routed(step: number, layers: Readonly<Record<string, RoutingJson>>): void {
    this.postOnce({ type: "routed", step, layers });
  }

  /** Histograms of all parameters after a step. */
  histograms(step: number, parameters: readonly ParameterHistograms[]): void {
    for (let first = 0; first < parameters.length; first += parametersAtOnce)
      this.postOnce({
        type: "histograms",
        step,
        parameters: parameters.slice(first, first + parametersAtOnce),
        isLast: first + parametersAtOnce >= parameters.length,
      });
  }

  /** Something worth telling people. */
  remark(text: string, isOwn = false): void {
    if (isOwn) this.post({ type: "remark", text });
    else this.postOnce({ type: "remark", text });
  }

  /** An image that another takes the place of. */
  damaged(image: DamagedImage): void {
    this.post({ type: "damaged", image });
  }

  /** The run is to end after a step that all ranks do and save, since this rank cannot have what it needs to go on. */
  cutShort(error: unknown): void {
    this.post({ type: "cut-short", error: describeError(error) });
  }

  done(step: number, bytesSent: number, spans: readonly Span[]): void {
    for (let first = 0; first < spans.length; first += spansAtOnce)
      this.post({ type: "spans", spans: spans.slice(first, first + spansAtOnce) });
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
