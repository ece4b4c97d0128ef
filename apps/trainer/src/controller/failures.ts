import type { SkeinError } from "@skein/tensor-core";
import { type ErrorReport, reviveError } from "../errors.ts";
import { timeLimits } from "../processes/time-limits.ts";

/** What ranks say when another one is gone: true, but not why. */
const echoes: ReadonlySet<string> = new Set(["peer-lost", "collective-timeout", "group-closed"]);

/** Failures of a run's ranks, of which the first that is not the echo of another is the one to tell. */
export class Failures {
  /** Rejects with the failure to tell. */
  readonly first: Promise<never>;
  private readonly reports: { readonly rank: number; readonly error: ErrorReport }[] = [];
  private reject!: (error: SkeinError) => void;
  private timer: NodeJS.Timeout | undefined;

  constructor() {
    this.first = new Promise((_, reject) => {
      this.reject = reject;
    });
    this.first.catch(() => undefined); // a run that ends well never asks
  }

  /** What every rank said, in order. */
  get all(): readonly { readonly rank: number; readonly error: ErrorReport }[] {
    return this.reports;
  }

  /** What ranks said of another that was gone. */
  get echoes(): readonly { readonly rank: number; readonly error: ErrorReport }[] {
    return this.reports.filter(({ error }) => echoes.has(error.code));
  }

  add(rank: number, error: ErrorReport): void {
    this.reports.push({ rank, error });
    if (!echoes.has(error.code)) this.settle(rank, error);
    else this.timer ??= setTimeout(() => this.settle(rank, error), timeLimits.ownReport);
  }

  /** A failure of the process that keeps the record. */
  addOwn(error: unknown): void {
    clearTimeout(this.timer);
    this.reject(error as SkeinError);
  }

  private settle(rank: number, error: ErrorReport): void {
    clearTimeout(this.timer);
    this.reject(reviveError(error, `rank ${rank}`));
  }
}
