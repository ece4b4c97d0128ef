import type { Clock } from "./clock.ts";

/** What a rank says to the others when it gives a world up, and of whom. */
export interface Word {
  /**
   * `lost`: gone or cut off. `timeout`: it did not take part in time. `disagree`: it sent another collective than was expected.
   * `revoked`: its certificate was.
   */
  readonly kind: "lost" | "timeout" | "disagree" | "revoked";
  readonly rank: number;
  readonly tag: number;
  readonly reason: string;
}

/** Why a world failed: the word that all words lead to, and whose it is. */
export interface Verdict extends Word {
  readonly reporter: number;
}

const longestReason = 2000;
/** Of a word as bytes: every character of the reason may take six. */
export const longestWord = 16_384;

/** Whether a value is a word. Written out: the schema library would be the largest part of whatever bundles a transport. */
const isWord = (value: unknown): value is Word => {
  if (typeof value !== "object" || value === null) return false;
  const { kind, rank, tag, reason, ...more } = value as Record<string, unknown>;
  const isCount = (part: unknown): boolean => Number.isSafeInteger(part) && (part as number) >= 0;
  return (
    ["lost", "timeout", "disagree", "revoked"].includes(kind as string) &&
    isCount(rank) &&
    isCount(tag) &&
    typeof reason === "string" &&
    reason.length <= longestReason &&
    Object.keys(more).length === 0
  );
};

/** A word as the payload of an error frame. */
export const encodeWord = (word: Word): Uint8Array =>
  new TextEncoder().encode(JSON.stringify({ ...word, reason: word.reason.slice(0, longestReason) }));

/** @throws SyntaxError when the bytes are no word. */
export const decodeWord = (bytes: Uint8Array): Word => {
  const value: unknown = JSON.parse(new TextDecoder().decode(bytes));
  if (!isWord(value)) throw new SyntaxError("invalid word of a failure: kind, rank, tag and reason are expected, and nothing else");
  return value;
};

export interface FailureOptions {
  readonly rank: number;
  readonly graceMilliseconds: number;
  readonly clock: Clock;
  /** What this rank itself waits for at the moment. */
  readonly waiting: () => { readonly peer: number; readonly tag: number } | undefined;
  /** Tell all peers. */
  readonly tell: (word: Word) => void;
  /** Called once, with the outcome. */
  readonly settle: (verdict: Verdict) => void;
}

/** Whether others' words change nothing: who is right of two that disagree cannot be known, and a list that is signed is right. */
const isCertain = ({ kind }: Word): boolean => kind === "disagree" || kind === "revoked";

/**
 * Finds out which rank a world failed of. When one rank dies, those that wait for it give up, and those that wait for these see them go:
 * each would blame another. So a rank that gives up tells all others whom it blames, waits a moment for their words, and follows
 * them: it blames A, A blames B, B blames nobody: it was B. A word from outside, from who watches the processes, settles it at once.
 */
export class Failure {
  readonly #options: FailureOptions;
  readonly #words = new Map<number, Word>();
  #start: Verdict | undefined;
  #settled = false;
  #cancel: () => void = () => undefined;

  constructor(options: FailureOptions) {
    this.#options = options;
  }

  /** Whether somebody has given up. */
  get begun(): boolean {
    return this.#start !== undefined;
  }

  /** This rank gives up. */
  suspect(word: Word): void {
    if (this.begun) return;
    const { rank, tell } = this.#options;
    this.#words.set(rank, word);
    this.#start = { ...word, reporter: rank };
    tell(word); // before it may settle, which ends the links
    this.#begin(this.#start);
  }

  /** Rank `from` has given up. */
  hear(from: number, word: Word): void {
    if (this.#settled || this.#words.has(from)) return;
    this.#words.set(from, word);
    if (isCertain(word)) return this.#settle({ ...word, reporter: from });
    if (this.begun) return;
    this.#begin({ ...word, reporter: from });
    const waiting = this.#options.waiting();
    // Who waits for somebody else is not the one that holds everybody up, and says so.
    if (word.kind !== "timeout" || waiting === undefined) return;
    const own: Word = { kind: "timeout", rank: waiting.peer, tag: waiting.tag, reason: "it waits too" };
    this.#words.set(this.#options.rank, own);
    this.#options.tell(own);
  }

  /** Who watches the processes says that a rank is gone. */
  rule(word: Word): void {
    if (this.#settled) return;
    if (!this.#words.has(this.#options.rank)) this.#options.tell(word);
    this.#settle({ ...word, reporter: this.#options.rank });
  }

  /** Forget it: the world was closed. */
  cancel(): void {
    this.#settled = true;
    this.#cancel();
  }

  #begin(verdict: Verdict): void {
    this.#start = verdict;
    if (isCertain(verdict)) return this.#settle(verdict);
    this.#cancel = this.#options.clock.after(this.#options.graceMilliseconds, () => this.#settle(this.#follow(verdict)));
  }

  #follow(start: Verdict): Verdict {
    let verdict = start;
    const seen = new Set([start.reporter]);
    for (;;) {
      const next = this.#words.get(verdict.rank);
      // Words that go round, as of two that cannot reach each other, say no more than the first; and no rank takes it from another
      // that it is itself lost.
      if (next === undefined || seen.has(next.rank) || (next.kind === "lost" && next.rank === this.#options.rank)) return verdict;
      seen.add(verdict.rank);
      verdict = { ...next, reporter: verdict.rank };
    }
  }

  #settle(verdict: Verdict): void {
    if (this.#settled) return;
    this.#start ??= verdict;
    this.#settled = true;
    this.#cancel();
    this.#options.settle(verdict);
  }
}
