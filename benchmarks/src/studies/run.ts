import { createHash } from "node:crypto";
import type { JobFile } from "./job-file.ts";
import type { StageRule } from "./stage-times.ts";

/** A training run of a study. */
export interface Run {
  /** Name of the run, consisting of segments separated by slashes, such as `mnist-cnn/top-k/seed-1`. */
  readonly name: string;
  readonly job: JobFile;
  /** Contents of files that the job refers to, by file name. They are written to the job's folder. */
  readonly files?: Readonly<Record<string, string>>;
  /** Whether a claim in the documents depends on the run. Other runs are only part of a study with --all. */
  readonly core: boolean;
  /** Number of steps at the start of the run that are excluded from medians, because of compilation and cold caches. */
  readonly warmUpSteps: number;
  /** Number of steps after which the work of steps repeats. Default: all steps do the same work. */
  readonly cycle?: number;
  /**
   * Stages of a step to time separately. The run is then traced, which takes additional time, and only its first twenty
   * steps count. Default: no stages.
   */
  readonly stages?: readonly StageRule[];
  /** Time limit in minutes, after which the run is stopped. */
  readonly minutes: number;
  /**
   * Expected duration in seconds. `prefix` selects similar runs by name; if such runs were measured, their durations
   * replace the expected duration.
   */
  readonly expected: { readonly seconds: number; readonly prefix: string };
  /** Reason why the run cannot start yet, and the command to run first. Absent: the run can start. */
  readonly lacks?: string | undefined;
}

/**
 * Returns a hash of a run's definition, so that results of an old job with the same name do not count for the current
 * job.
 */
export const definitionOf = ({ job, files = {}, warmUpSteps, cycle, stages }: Run): string =>
  createHash("sha256")
    .update(JSON.stringify([job, files, warmUpSteps, ...((cycle ?? stages) ? [cycle ?? 1, stages ?? []] : [])]))
    .digest("hex")
    .slice(0, 12);

const begins = (segment: string, word: string): boolean => segment === word || segment.startsWith(`${word}-`);

/**
 * Whether one of `patterns` selects a run. A pattern consists of words separated by slashes. Each word must equal a
 * segment of the run's name, or begin a segment in which "-" follows the word. An empty list selects all runs.
 */
export const isSelected = ({ name }: Pick<Run, "name">, patterns: readonly string[]): boolean =>
  patterns.length === 0 ||
  patterns.some((pattern) =>
    pattern.split("/").every((word) => name.split("/").some((segment) => begins(segment, word))),
  );
