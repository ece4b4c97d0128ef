import { createHash } from "node:crypto";
import type { JobFile } from "./job-file.ts";
import type { StageRule } from "./stage-times.ts";

/** A training run of a study. */
export interface Run {
  /** Segments with slashes between them, such as `mnist-cnn/top-k/seed-1`. */
  readonly name: string;
  readonly job: JobFile;
  /** Files that the job names, beside it. */
  readonly files?: Readonly<Record<string, string>>;
  /** Whether a claim of the documents rests on it. The others are made only with --all. */
  readonly core: boolean;
  /** First steps that count in no median: compilation, cold caches. */
  readonly warmUpSteps: number;
  /** Steps after which what a step does repeats, where some do more than others. Default: all do the same. */
  readonly cycle?: number;
  /**
   * What parts of a step are to be told apart: the run is traced, which takes time of its own, and only its first
   * twenty steps count. Default: none.
   */
  readonly stages?: readonly StageRule[];
  /** After so long it is given up. */
  readonly minutes: number;
  /**
   * About how long it takes, and what the names of runs that take as long begin with: theirs is believed once they were
   * made.
   */
  readonly expected: { readonly seconds: number; readonly prefix: string };
  /** Why it cannot be made yet, and what to do first. */
  readonly lacks?: string | undefined;
}

/** Tells runs of one name apart whose definitions differ, so that an old result does not stand for a new job. */
export const definitionOf = ({ job, files = {}, warmUpSteps, cycle, stages }: Run): string =>
  createHash("sha256")
    .update(JSON.stringify([job, files, warmUpSteps, ...((cycle ?? stages) ? [cycle ?? 1, stages ?? []] : [])]))
    .digest("hex")
    .slice(0, 12);

const begins = (segment: string, word: string): boolean => segment === word || segment.startsWith(`${word}-`);

/**
 * Whether a run is meant by one of `patterns`; all of whose words, with slashes between them, must begin one of its
 * segments. No pattern means all.
 */
export const isMeant = ({ name }: Pick<Run, "name">, patterns: readonly string[]): boolean =>
  patterns.length === 0 ||
  patterns.some((pattern) =>
    pattern.split("/").every((word) => name.split("/").some((segment) => begins(segment, word))),
  );
