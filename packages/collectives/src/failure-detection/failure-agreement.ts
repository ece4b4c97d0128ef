import type { Clock } from "../clock.ts";
import type { FailureReport } from "./failure-report.ts";

/**
 * Decision about the cause of a world's failure: the decisive failure report, which is the last in the chain of
 * reports, and the rank that sent it.
 */
export interface FailureDecision extends FailureReport {
  readonly reporter: number;
}

export interface FailureAgreementOptions {
  readonly rank: number;
  /** Time in milliseconds that a rank waits for the reports of other ranks after it gives up. */
  readonly graceMilliseconds: number;
  readonly clock: Clock;
  /** Returns the peer and tag that this rank is currently waiting for, or undefined if it is not waiting. */
  readonly waiting: () => { readonly peer: number; readonly tag: number } | undefined;
  /** Sends a report to all peers. */
  readonly broadcast: (report: FailureReport) => void;
  /** Called one time, with the decision about the cause of the failure. */
  readonly decided: (decision: FailureDecision) => void;
}

/**
 * Default of `graceMilliseconds`. A report arrives within this time on any network. The launcher waits longer for a
 * failed rank to report its own failure.
 */
export const defaultGraceMilliseconds = 300;

/**
 * Whether a report is final, so that later reports cannot change the decision. A report of two ranks that disagree is
 * final, because no other report could show which rank is right. A report of a revoked rank is final, because a
 * revocation list is signed.
 */
const isCertain = ({ kind }: FailureReport): boolean => kind === "disagree" || kind === "revoked";

/**
 * Determines which rank caused the failure of a world. When a rank dies, the ranks that wait for it give up. Ranks that
 * wait for a rank that gave up then see their connections close, so each rank would blame a different rank. Therefore a
 * rank that gives up sends its report to all other ranks, waits briefly for their reports, and follows the chain: if
 * this rank blames A, A blames B and B blames no rank, then B failed. A report from the process that watches the ranks
 * is decisive immediately.
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

  /** Whether any rank has given up waiting. */
  get hasStarted(): boolean {
    return this.#start !== undefined;
  }

  /** Records that this rank gives up waiting, and sends its report to all peers. */
  suspect(report: FailureReport): void {
    if (this.hasStarted) return;
    const { rank, broadcast } = this.#options;
    this.#reports.set(rank, report);
    this.#start = { ...report, reporter: rank };
    broadcast(report); // Send the report before the decision, because the decision closes the links.
    this.#begin(this.#start);
  }

  /** Records the report of rank `from`, which has given up waiting. */
  receive(from: number, report: FailureReport): void {
    if (this.#decided || this.#reports.has(from)) return;
    this.#reports.set(from, report);
    if (isCertain(report)) return this.#decide({ ...report, reporter: from });
    if (this.hasStarted) return;
    this.#begin({ ...report, reporter: from });
    const waiting = this.#options.waiting();
    // A rank that waits for another rank is not the cause of the failure, and reports the rank it waits for.
    if (report.kind !== "timeout" || waiting === undefined) return;
    const own: FailureReport = { kind: "timeout", rank: waiting.peer, tag: waiting.tag, reason: "it waits too" };
    this.#reports.set(this.#options.rank, own);
    this.#options.broadcast(own);
  }

  /**
   * Decides immediately about the cause of the failure, because the process that watches the ranks has reported the
   * loss of a rank.
   */
  decide(report: FailureReport): void {
    if (this.#decided) return;
    if (!this.#reports.has(this.#options.rank)) this.#options.broadcast(report);
    this.#decide({ ...report, reporter: this.#options.rank });
  }

  /** Cancels the pending decision about the cause of a failure. Called when the world is closed. */
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
      // Reports that form a cycle, for example of two ranks that cannot reach each other, add no information to the
      // first report. A rank never accepts a report of its own loss.
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
