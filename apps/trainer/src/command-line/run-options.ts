import { ConfigError, type GlobalOptions } from "@skein/cli/node";
import { type Override, parseOverride } from "@skein/job/node";

/** Options of commands that run a job. */
export interface RunOptions extends GlobalOptions {
  readonly ranks?: string;
  readonly steps?: string;
  readonly set: readonly string[];
  /** Path of the trace file. True: the default path, because `--trace` was given without a path. */
  readonly trace?: string | true;
  readonly output?: string;
  readonly maxRestarts?: string;
  readonly transport?: string;
  readonly certificates?: string;
  readonly insecure?: boolean;
  readonly resumeIfPossible?: boolean;
  readonly watch?: boolean;
  readonly log?: string;
  readonly dryRun?: boolean;
  readonly overfit?: string;
  readonly findBatch?: boolean;
  readonly memory?: string;
}

/**
 * Converts options to overrides of the job. Text that is not a number remains a string, which the job schema rejects.
 */
export const overridesOf = ({ ranks, steps, set, transport, certificates, insecure }: RunOptions): Override[] => {
  const numeric = (key: string, text: string | undefined): Override[] =>
    text === undefined
      ? []
      : [
          {
            path: [key],
            value: text.trim() === "" || Number.isNaN(Number(text)) ? text : Number(text),
            origin: `--${key} ${text}`,
          },
        ];
  const given = (path: readonly string[], option: string, value: unknown): Override[] =>
    value === undefined ? [] : [{ path, value, origin: value === true ? option : `${option} ${String(value)}` }];
  return [
    ...set.map(parseOverride),
    ...numeric("ranks", ranks),
    ...numeric("steps", steps),
    ...given(["transport"], "--transport", transport),
    ...given(["network", "certificates"], "--certificates", certificates),
    ...given(["network", "insecure"], "--insecure", insecure),
  ];
};

/** Returns the maximum number of automatic restarts. Empty if the option is absent. */
export const restartsOf = ({ maxRestarts }: RunOptions): { readonly maxRestarts?: number } => {
  if (maxRestarts === undefined) return {};
  if (!/^\d+$/.test(maxRestarts))
    throw new ConfigError([
      `--max-restarts ${maxRestarts}: must be a whole number from 0; use 3, or 0 to stop at the first loss`,
    ]);
  return { maxRestarts: Number(maxRestarts) };
};
