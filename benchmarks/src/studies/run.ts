import { createHash } from "node:crypto";
import type { JobFile } from "./job-file.ts";
import type { StageRule } from "./stage-times.ts";

/** A training run of a study. */
export interface Run {
  /** Segments with slashes between them, such as `mnist-cnn/top-k/seed-1`. */
  readonly name: string;
  readonly job: JobFile;
  /** Contents of files that the job names, by name; stored in the job's folder. */
  readonly files?: Readonly<Record<string, string>>;
  /** Whether a claim of the documents depends on the run. Other runs are made only with --all. */
  readonly core: boolean;
  /** Number of first steps that no median includes: compilation, cold caches. */
  readonly warmUpSteps: number;
  /** Number of steps after which the work of steps repeats, if steps differ. Default: all steps do the same work. */
  readonly cycle?: number;
  /**
   * Stages of a step to time separately. The run is then traced, which takes additional time, and only its first twenty
   * steps count. Default: no stages.
   */
  readonly stages?: readonly StageRule[];
  /** Time limit in minutes, after which the run is stopped. */
  readonly minutes: number;
  /** Expected seconds, and the prefix of names of similar runs, whose measured times replace the expectation. */
  readonly expected: { readonly seconds: number; readonly prefix: string };
  /** Reason why the run cannot be made yet, and the command to run first. Absent: the run can be made. */
  readonly lacks?: string | undefined;
}

/**
 * Hash that separates runs of one name with different definitions, so that an old result does not count for a new job.
 */
export const definitionOf = ({ job, files = {}, warmUpSteps, cycle, stages }: Run): string =>
  createHash("sha256")
    .update(JSON.stringify([job, files, warmUpSteps, ...((cycle ?? stages) ? [cycle ?? 1, stages ?? []] : [])]))
    .digest("hex")
    .slice(0, 12);

const begins = (segment: string, word: string): boolean => segment === word || segment.startsWith(`${word}-`);

/**
 * Whether one of `patterns` selects a run: all words of the pattern, separated by slashes, must begin segments of the
 * name. An empty list selects all runs.
 */
export const isSelected = ({ name }: Pick<Run, "name">, patterns: readonly string[]): boolean =>
  patterns.length === 0 ||
  patterns.some((pattern) =>
    pattern.split("/").every((word) => name.split("/").some((segment) => begins(segment, word))),
  );
