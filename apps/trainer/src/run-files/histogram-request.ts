import { closeSync, openSync, unlinkSync } from "node:fs";
import { join } from "node:path";
import type { Communicator } from "@skein/tensor-core";

/** In the output folder of a run: a file by which somebody asks it for histograms; the run takes it away. */
export const requestFile = "histograms.request";

/**
 * Ask the run in a folder for histograms. Asking twice before it answers is asking once.
 *
 * @throws the system's error where nothing can be written there.
 */
export const askForHistograms = (folder: string): void => {
  try {
    closeSync(openSync(join(folder, requestFile), "wx")); // never through a link
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
};

/**
 * Take a request away, where there is one: to answer it, or because nobody will. A run does so as it begins, for what
 * was left by a run of its folder before, and at its end, after it has said that it is over: whoever asks later sees
 * that.
 *
 * Cost: one call of the system.
 */
export const takeRequest = (folder: string): boolean => {
  try {
    unlinkSync(join(folder, requestFile));
    return true;
  } catch {
    return false;
  }
};

const lookEveryMilliseconds = 1000;
/** However short steps are: a run whose steps become long is asked in vain for no longer. */
const mostSteps = 1000;

/** Looks for requests about once a second, so that all ranks learn of one before the same step. */
export class HistogramRequests {
  private readonly folder: string;
  private readonly rank: number;
  private readonly world: Pick<Communicator, "worldSize" | "exchangeTexts">;
  private readonly clock: () => number;
  private lookedAt = -Infinity;
  private interval = 1;
  private stepsLeft = 1;

  /** @param clock returns milliseconds. */
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
   * Whether histograms are asked for, alike on all ranks, which call it before each step. Rank 0 looks, and tells the
   * others together with the number of steps until the next look: ranks have no common clock, but count alike.
   *
   * Cost: about once a second a call of the system, and with several ranks an exchange of a few bytes.
   */
  async isAsked(): Promise<boolean> {
    if (this.world.worldSize === 1) return this.isTime() && takeRequest(this.folder);
    if (--this.stepsLeft > 0) return false;
    const own = this.rank === 0 ? [takeRequest(this.folder), this.nextInterval()] : [];
    const [first] = await this.world.exchangeTexts(JSON.stringify(own));
    const [isAsked, steps] = JSON.parse(first!) as [boolean, number];
    this.interval = this.stepsLeft = steps;
    return isAsked;
  }

  private isTime(): boolean {
    const now = this.clock();
    if (now - this.lookedAt < lookEveryMilliseconds) return false;
    this.lookedAt = now;
    return true;
  }

  /** As many steps as took a second lately. */
  private nextInterval(): number {
    const now = this.clock();
    const perStep = (now - this.lookedAt) / this.interval;
    this.lookedAt = now;
    return Math.max(1, Math.min(mostSteps, Math.floor(lookEveryMilliseconds / perStep)));
  }
}
