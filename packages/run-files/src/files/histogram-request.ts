import { closeSync, openSync, unlinkSync } from "node:fs";
import { join } from "node:path";
import type { Communicator } from "@skein/tensor-core";

/** File in the output folder of a run that requests histograms. The run removes the file. */
export const requestFile = "histograms.request";

/**
 * Requests histograms from the run in a folder. A second request before the run responds has no effect.
 *
 * @throws the system's error if the folder is not writable.
 */
export const requestHistograms = (folder: string): void => {
  try {
    closeSync(openSync(join(folder, requestFile), "wx")); // "wx": does not follow a symbolic link
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
};

/**
 * Removes a pending request, if there is one. A run calls this function to respond to the request; at its start, to
 * drop requests to an earlier run in its folder; and at its end, after it has recorded that it has ended, so that later
 * requesters see the end.
 *
 * Cost: one system call.
 * @returns whether there was a request.
 */
export const takeRequest = (folder: string): boolean => {
  try {
    unlinkSync(join(folder, requestFile));
    return true;
  } catch {
    return false;
  }
};

const pollMilliseconds = 1000;
/**
 * Maximum number of steps between two checks for a request. Without this limit, a run whose steps become slower would
 * not see a request for a long time.
 */
const maxSteps = 1000;

/** Checks for histogram requests about once a second. All ranks see a request before the same step. */
export class HistogramRequests {
  private readonly folder: string;
  private readonly rank: number;
  private readonly world: Pick<Communicator, "worldSize" | "exchangeTexts">;
  private readonly clock: () => number;
  private checkedAt = -Infinity;
  private interval = 1;
  private stepsLeft = 1;

  /** Creates the check for requests in `folder`. @param clock Returns a time in milliseconds. */
  constructor(
    folder: string,
    rank: number,
    world: Pick<Communicator, "worldSize" | "exchangeTexts">,
    clock: () => number = () => performance.now(),
  ) {
    this.folder = folder;
    this.rank = rank;
    this.world = world;
    this.clock = clock;
  }

  /**
   * Whether histograms are requested. Must be called on all ranks before each step; returns the same result on all
   * ranks. Rank 0 checks, and sends the result with the number of steps until the next check, because ranks share a
   * step count but no clock.
   *
   * Cost: about once a second one system call and, with several ranks, an exchange of a few bytes.
   */
  async isRequested(): Promise<boolean> {
    if (this.world.worldSize === 1) return this.isTime() && takeRequest(this.folder);
    if (--this.stepsLeft > 0) return false;
    const own = this.rank === 0 ? [takeRequest(this.folder), this.nextInterval()] : [];
    const [first] = await this.world.exchangeTexts(JSON.stringify(own));
    const [isRequested, steps] = JSON.parse(first!) as [boolean, number];
    this.interval = this.stepsLeft = steps;
    return isRequested;
  }

  private isTime(): boolean {
    const now = this.clock();
    if (now - this.checkedAt < pollMilliseconds) return false;
    this.checkedAt = now;
    return true;
  }

  /** Returns the number of steps that take about a second, computed from recent steps. */
  private nextInterval(): number {
    const now = this.clock();
    const perStep = (now - this.checkedAt) / this.interval;
    this.checkedAt = now;
    return Math.max(1, Math.min(maxSteps, Math.floor(pollMilliseconds / perStep)));
  }
}
