import { DataError, stepsPerEpoch } from "@skein/data";
import { everyRankAxis } from "@skein/job/node";
import type { BestSoFar } from "@skein/run-files/node";
import {
  bestAfter,
  comparedFigures,
  comparesEvaluations,
  type Comparison,
  comparisonOf,
  type DeviceState,
  endsEarly,
  type EvaluationSums,
  type LiveState,
} from "@skein/step/node";
import { spanned } from "@skein/tensor-core";
import { totals } from "../planning/agree.ts";
import type { CutShort } from "./cut-short.ts";
import { isDue } from "./is-due.ts";
import type { RankRun } from "./rank-run.ts";

/** Evaluations of a run on the held-out samples, and the best evaluation so far. */
export class RunEvaluations {
  /** Whether evaluations are compared, so that all ranks must know the result before the next decision. */
  readonly compares: boolean;
  /** Whether all ranks must evaluate together. */
  readonly isTogether: boolean;
  private readonly run: RankRun;
  private readonly cutShort: CutShort;
  private readonly comparison: Comparison;
  private readonly total: ReturnType<typeof totals>;
  private readonly everyStepsOfEpochs: number | undefined;
  private best: BestSoFar | undefined;
  private lastStep = -1;

  constructor(run: RankRun, cutShort: CutShort) {
    const { job, parts, backend, communicators, train } = run;
    const { everyEpochs } = job.evaluation;
    [this.run, this.cutShort, this.best] = [run, cutShort, run.best];
    this.compares = comparesEvaluations(job);
    this.isTogether = parts.model.sharding !== undefined || this.compares;
    this.comparison = comparisonOf(job);
    this.total = totals(backend, communicators, everyRankAxis(parts.mesh));
    this.everyStepsOfEpochs = everyEpochs && everyEpochs * stepsPerEpoch(train.count, job.batch);
  }

  /** Whether an evaluation is due after `done` completed steps. */
  isDue(done: number): boolean {
    const { job, stepOffset } = this.run;
    return isDue(done + stepOffset, this.everyStepsOfEpochs) || isDue(done, job.evaluation.everySteps);
  }

  /** Whether the run must end, because evaluations no longer improve. */
  get endsEarly(): boolean {
    return endsEarly(this.run.job, this.best);
  }

  /** Whether the job saves the state after `done` steps because its evaluation is the best so far. */
  isBestToSave(done: number): boolean {
    return this.run.job.checkpoint.best === true && this.lastStep === done && this.best?.step === done;
  }

  /** Evaluates the state, unless the state was already evaluated or the run only measures steps. */
  async evaluate(state: LiveState): Promise<void> {
    const { stepsOnly, trace } = this.run;
    if (stepsOnly === true || this.lastStep === state.done) return;
    const settled = await state.settled();
    await spanned(trace?.recorder, { name: `evaluate after step ${state.done}`, track: "host" }, () =>
      this.evaluateSettled(settled, state.done),
    );
    this.lastStep = state.done;
  }

  /** Describes why a run ended early. */
  get earlyEndRemark(): string {
    const { since, step } = this.best!;
    return `the run ends early; the last ${since} evaluations were not better than the evaluation after step ${step}`;
  }

  release(): void {
    this.total.release();
  }

  private async evaluateSettled(state: DeviceState, done: number): Promise<void> {
    const began = performance.now();
    const sums = await this.ownSums(state, done);
    // The state from which a run resumes was already compared before it was saved.
    if (this.compares && done > this.run.firstStep) await this.compare(sums, done);
    if (sums !== undefined) this.run.report.evaluated(done, sums, (performance.now() - began) / 1000, this.best);
  }

  /** Computes sums over this rank's share of the samples. Undefined: samples of this share are unreadable. */
  private async ownSums(state: DeviceState, done: number): Promise<EvaluationSums | undefined> {
    try {
      return await this.run.evaluate(state, done);
    } catch (error) {
      // If ranks evaluate together, the run fails, because other ranks are waiting for this rank.
      if (!(error instanceof DataError) || this.run.parts.model.sharding !== undefined) throw error;
      this.cutShort(error);
      return undefined;
    }
  }

  /**
   * Compares an evaluation with the best so far. All ranks use the same sums, because ranks must make equal decisions.
   */
  private async compare(sums: EvaluationSums | undefined, done: number): Promise<void> {
    const { predicts, parts } = this.run;
    const compared = comparedFigures(predicts, parts.model.metrics)[this.comparison.figure]!;
    const [sum, per, count] = await this.total(
      [compared.sum, compared.per, "count"].map((name) => sums?.[name] ?? Number.NaN),
    );
    // If the metrics of one rank are missing, no rank can compare.
    if (!Number.isNaN(count)) this.best = bestAfter(this.comparison, this.best, done, sum! / per!);
  }
}
