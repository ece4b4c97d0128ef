import { type ErrorReport, reviveError } from "@skein/cli/node";
import type { SkeinError } from "@skein/tensor-core";
import { timeLimits } from "../processes/time-limits.ts";

/** Error codes that a rank reports because another rank ended. These errors are not the cause of a failure. */
const echoes: ReadonlySet<string> = new Set(["peer-lost", "collective-timeout", "group-closed"]);

/**
 * Collects the failures of a run's ranks, and selects the failure to report: the first failure that was not caused by
 * another failure.
 */
export class Failures {
  /** Rejects with the failure to report. */
  readonly first: Promise<never>;
  private readonly reports: { readonly rank: number; readonly error: ErrorReport }[] = [];
  private reject!: (error: SkeinError) => void;
  private timer: NodeJS.Timeout | undefined;

  constructor() {
    this.first = new Promise((_, reject) => {
      this.reject = reject;
    });
    this.first.catch(() => undefined); // no unhandled rejection in a successful run
  }

  /** All reported failures, in order of arrival. */
  get all(): readonly { readonly rank: number; readonly error: ErrorReport }[] {
    return this.reports;
  }

  /** Failures that ranks reported because another rank had ended. */
  get echoes(): readonly { readonly rank: number; readonly error: ErrorReport }[] {
    return this.reports.filter(({ error }) => echoes.has(error.code));
  }

  add(rank: number, error: ErrorReport): void {
    this.reports.push({ rank, error });
    if (!echoes.has(error.code)) this.settle(rank, error);
    else this.timer ??= setTimeout(() => this.settle(rank, error), timeLimits.ownReport);
  }

  /** Reports a failure that this process detected itself, instead of a failure that a rank sent. */
  addOwn(error: unknown): void {
    clearTimeout(this.timer);
    this.reject(error as SkeinError);
  }

  private settle(rank: number, error: ErrorReport): void {
    clearTimeout(this.timer);
    this.reject(reviveError(error, `rank ${rank}`));
  }
}
