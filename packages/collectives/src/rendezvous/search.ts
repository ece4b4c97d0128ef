import { RendezvousError } from "./errors.ts";
import { formatRanks } from "../ranks.ts";
import type { RankAddress } from "./roster.ts";
import { defaultNoticeTimes, type NoticeTimes, type Waiting, WaitNotice } from "./wait-notice.ts";

/** What a process looks for, and who hears of it. */
export interface SearchOptions {
  /** Where the coordinator listens, or soon will. */
  readonly address: RankAddress;
  /** Ranks that are threads of this process. */
  readonly ranks: readonly number[];
  /** Told, in a line, for whom this process waits and where, when that takes longer than a moment: by `notice`. */
  readonly onWaiting?: (line: string) => void;
  /** When. Default: `defaultNoticeTimes`. */
  readonly notice?: NoticeTimes;
  /** Give up, before all ranks have joined. */
  readonly signal?: AbortSignal;
}

/** What a search has come to that was let in. */
export const joined = "joined";

/**
 * A process's search for its coordinator and a place there: what it has met with, what people are told of it, and
 * whether it was given up.
 */
export class Search {
  /** By `performance.now()`. */
  readonly deadline: number;
  /** Rejects with `rendezvous-stopped` once the search is given up. */
  readonly givenUp: Promise<never>;
  readonly #options: SearchOptions;
  readonly #notice: WaitNotice | undefined;
  #found = "";

  constructor(options: SearchOptions, deadline: number) {
    const { notice = defaultNoticeTimes, onWaiting, signal, ranks } = options;
    this.#options = options;
    this.deadline = deadline;
    this.givenUp = new Promise((_, reject) => {
      const giveUp = (): void =>
        reject(
          new RendezvousError(
            "rendezvous-stopped",
            `${formatRanks(ranks)} was asked to end before all ranks had joined`,
          ),
        );
      signal?.addEventListener("abort", giveUp, { once: true });
      if (signal?.aborted === true) giveUp();
    });
    this.givenUp.catch(() => undefined); // it may be given up while nobody waits
    this.#notice = onWaiting && new WaitNotice(notice, () => this.#look(), onWaiting);
  }

  /** What the last try has met with, or `joined`. */
  found(what: string): void {
    this.#found = what.replace(/^connect ECONNREFUSED$/, "connection refused, as nobody listens there yet");
  }

  end(): void {
    this.#notice?.stop();
  }

  #look(): Waiting {
    const { address, ranks } = this.#options;
    const [who, where, state] = [formatRanks(ranks), `${address.host}:${address.port}`, this.#found];
    if (state === joined)
      return { state, line: `${who}: joined at ${where} and waiting for other ranks, which rank 0 names` };
    const seconds = Math.max(0, Math.ceil((this.deadline - performance.now()) / 1000));
    return {
      state,
      line: `${who}: waiting for rank 0 at ${where}${state === "" ? "" : ` (${state})`}; trying for ${seconds} s more`,
    };
  }
}
