import { RendezvousError } from "./errors.ts";
import { formatRanks } from "../ranks.ts";
import type { RankAddress } from "./roster.ts";
import { defaultNoticeTimes, type NoticeTimes, type Waiting, WaitNotice } from "./wait-notice.ts";

/**
 * Options for the search of a process for its coordinator: the coordinator's address, the ranks of the process, and
 * notices to the user.
 */
export interface SearchOptions {
  /** Address on which the coordinator listens, or will listen soon. */
  readonly address: RankAddress;
  /** Ranks that are threads of this process. */
  readonly ranks: readonly number[];
  /** Called at the times of `notice` with a line that names the awaited event and the coordinator's address. */
  readonly onWaiting?: (line: string) => void;
  /** Times of the calls of `onWaiting`. Default: `defaultNoticeTimes`. */
  readonly notice?: NoticeTimes;
  /** Signal that cancels the join before all ranks have joined. */
  readonly signal?: AbortSignal;
}

/** Value passed to `Search.found` when the process was admitted, in place of the reason for a failed attempt. */
export const joined = "joined";

/**
 * State of a process's search for its coordinator. Stores the result of the last connection attempt and notifies the
 * user of the wait. The search can be canceled.
 */
export class Search {
  /** Deadline in milliseconds of `performance.now()`. */
  readonly deadline: number;
  /** Rejects with `rendezvous-stopped` when the search is canceled. */
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
    this.givenUp.catch(() => undefined); // The promise may reject while no code waits for it.
    this.#notice = onWaiting && new WaitNotice(notice, () => this.#waitingState(), onWaiting);
  }

  /**
   * Records the reason why the last attempt to reach the coordinator failed, or `joined` if the process was admitted.
   */
  found(what: string): void {
    this.#found = what.replace(/^connect ECONNREFUSED$/, "connection refused, no process listens there yet");
  }

  end(): void {
    this.#notice?.stop();
  }

  #waitingState(): Waiting {
    const { address, ranks } = this.#options;
    const [rankText, where, state] = [formatRanks(ranks), `${address.host}:${address.port}`, this.#found];
    if (state === joined)
      return { state, line: `${rankText}: joined at ${where} and waiting for other ranks, which rank 0 names` };
    const seconds = Math.max(0, Math.ceil((this.deadline - performance.now()) / 1000));
    return {
      state,
      line: `${rankText}: waiting for rank 0 at ${where}${state === "" ? "" : ` (${state})`}; trying for ${seconds} s more`,
    };
  }
}
