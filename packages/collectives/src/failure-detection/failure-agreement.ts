import type { Clock } from "../clock.ts";
import type { FailureReport } from "./failure-report.ts";

/** Why a world failed: the report that all reports lead to, and whose it is. */
export interface FailureDecision extends FailureReport {
  readonly reporter: number;
}

export interface FailureAgreementOptions {
  readonly rank: number;
  /** How long a rank that gives up waits for others' reports. */
  readonly graceMilliseconds: number;
  readonly clock: Clock;
  /** What this rank itself waits for at the moment. */
  readonly waiting: () => { readonly peer: number; readonly tag: number } | undefined;
  /** Tell all peers. */
  readonly tell: (report: FailureReport) => void;
  /** Called once, with the outcome. */
  readonly decided: (decision: FailureDecision) => void;
}

/**
 * A report crosses any network in less; and who launches the ranks waits longer for the rank that failed to say so
 * itself.
 */
export const defaultGraceMilliseconds = 300;

/**
 * Whether others' reports change nothing: who is right of two that disagree cannot be known, and a list that is signed
 * is right.
 */
const isCertain = ({ kind }: FailureReport): boolean => kind === "disagree" || kind === "revoked";

/**
 * Finds out which rank a world failed of. When one rank dies, those that wait for it give up, and those that wait for
 * these see them go: each would blame another. So a rank that gives up tells all others whom it blames, waits a moment
 * for their reports, and follows them: it blames A, A blames B, B blames nobody: it was B. A report from outside, from
 * who watches the processes, decides it at once.
 */
export class FailureAgreement {
  readonly #options: FailureAgreementOptions;
  readonly #reports = new Map<number, FailureReport>();
  #start: FailureDecision | undefined;
  #decided = false;
  #cancel: () => void = () => undefined;

  constructor(options: FailureAgreementOptions) {
    this.#options = options;
  }

  /** Whether somebody has given up. */
  get begun(): boolean {
    return this.#start !== undefined;
  }

  /** This rank gives up. */
  suspect(report: FailureReport): void {
    if (this.begun) return;
    const { rank, tell } = this.#options;
    this.#reports.set(rank, report);
    this.#start = { ...report, reporter: rank };
    tell(report); // before it may decide, which ends the links
    this.#begin(this.#start);
  }

  /** Rank `from` has given up. */
  hear(from: number, report: FailureReport): void {
    if (this.#decided || this.#reports.has(from)) return;
    this.#reports.set(from, report);
    if (isCertain(report)) return this.#decide({ ...report, reporter: from });
    if (this.begun) return;
    this.#begin({ ...report, reporter: from });
    const waiting = this.#options.waiting();
    // Who waits for somebody else is not the one that holds everybody up, and says so.
    if (report.kind !== "timeout" || waiting === undefined) return;
    const own: FailureReport = { kind: "timeout", rank: waiting.peer, tag: waiting.tag, reason: "it waits too" };
    this.#reports.set(this.#options.rank, own);
    this.#options.tell(own);
  }

  /** Who watches the processes says that a rank is gone. */
  rule(report: FailureReport): void {
    if (this.#decided) return;
    if (!this.#reports.has(this.#options.rank)) this.#options.tell(report);
    this.#decide({ ...report, reporter: this.#options.rank });
  }

  /** Forget it: the world was closed. */
  cancel(): void {
    this.#decided = true;
    this.#cancel();
  }

  #begin(decision: FailureDecision): void {
    this.#start = decision;
    if (isCertain(decision)) return this.#decide(decision);
    this.#cancel = this.#options.clock.after(this.#options.graceMilliseconds, () =>
      this.#decide(this.#follow(decision)),
    );
  }

  #follow(start: FailureDecision): FailureDecision {
    let decision = start;
    const seen = new Set([start.reporter]);
    for (;;) {
      const next = this.#reports.get(decision.rank);
      // Reports that go round, as of two that cannot reach each other, say no more than the first; and no rank takes it
      // from another that it is itself lost.
      if (next === undefined || seen.has(next.rank) || (next.kind === "lost" && next.rank === this.#options.rank))
        return decision;
      seen.add(decision.rank);
      decision = { ...next, reporter: decision.rank };
    }
  }

  #decide(decision: FailureDecision): void {
    if (this.#decided) return;
    this.#start ??= decision;
    this.#decided = true;
    this.#cancel();
    this.#options.decided(decision);
  }
}
