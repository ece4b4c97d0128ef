import { type ErrorKind, SkeinError } from "@skein/tensor-core";
import { visibleLine } from "@skein/tensor-core/backend";
import { asTyped, resumeLine } from "./console/own-command.ts";
import { redactSecrets } from "./console/redact-secrets.ts";

/**
 * Exit codes of the command line. Launchers use the exit code to decide whether to restart ranks. Wrong usage (2) fails
 * again on every attempt. `temporary` (EX_TEMPFAIL of BSD's sysexits) may succeed after some time.
 */
export const exitCodes = {
  ok: 0,
  failure: 1,
  usage: 2,
  temporary: 75,
  hungUp: 129,
  interrupted: 130,
  quit: 131,
  terminated: 143,
} as const;

/** Exit codes of a run that stopped on a signal and has saved: 128 + the number of the signal. */
export const stopCodes: readonly number[] = [
  exitCodes.hungUp,
  exitCodes.interrupted,
  exitCodes.quit,
  exitCodes.terminated,
];

/**
 * Error for an unusable job file or option. The message has one line per problem: location, value, rule and suggested
 * fix. In quoted values, secrets in URLs are redacted, and terminal control characters are escaped.
 */
export class ConfigError extends SkeinError {
  override name = "ConfigError";

  constructor(faults: readonly string[]) {
    super("user", "config", faults.map((fault) => visibleLine(redactSecrets(fault))).join("\n"));
  }
}

/**
 * Error for an unusable user module or object. The message quotes the error of the user code, or describes the result
 * that it should have returned.
 */
export class ModuleError extends SkeinError {
  override name = "ModuleError";

  constructor(message: string, options?: ErrorOptions) {
    super("user", "module", message, options);
  }
}

/** Error for a user callback that does not return within its timeout. */
export class CallbackError extends SkeinError {
  override name = "CallbackError";

  constructor(message: string) {
    super("user", "callback", message);
  }
}

/** Error for a checkpoint of a different model, or for a missing checkpoint. */
export class CheckpointError extends SkeinError {
  override name = "CheckpointError";

  constructor(message: string, options?: ErrorOptions) {
    super("user", "checkpoint", message, options);
  }
}

/**
 * Error for a checkpoint that is truncated or altered, or cannot be read, for example on a temporarily unavailable
 * disk.
 */
export class DamagedCheckpointError extends SkeinError {
  override name = "DamagedCheckpointError";

  constructor(message: string, options?: ErrorOptions) {
    super("environment", "checkpoint-damaged", message, options);
  }
}

/** Error for a disk without space for the files of a run. */
export class DiskFullError extends SkeinError {
  override name = "DiskFullError";

  constructor(message: string, options?: ErrorOptions) {
    super("environment", "disk-full", message, options);
  }
}

/**
 * Error for a loss or gradient that is not finite. A restart from the same checkpoint would repeat the same steps bit
 * for bit, so launchers do not restart the run. The user must change the job.
 */
export class NonFiniteError extends SkeinError {
  override name = "NonFiniteError";

  constructor(message: string) {
    super("user", "non-finite", message);
  }
}

/**
 * Error for a command that finished without the desired result: samples were not memorized, or a search found no batch
 * size, no learning rate, or no trial with a loss. A retry would give the same result, so the user must change the job.
 */
export class OutcomeError extends SkeinError {
  override name = "OutcomeError";

  constructor(code: "no-batch" | "no-rate" | "not-learnt" | "sweep-failed", message: string) {
    super("user", code, message);
  }
}

/** Error for a run that ended early because of its environment, not because of a bug in Skein or bad input. */
export class RunError extends SkeinError {
  override name = "RunError";

  constructor(
    code:
      | "rank-failed"
      | "process-lost"
      | "port-in-use"
      | "interrupted"
      | "replicas-differ"
      | "log-server"
      | "output-in-use"
      | "output-taken",
    message: string,
    options?: ErrorOptions,
  ) {
    super("environment", code, message, options);
  }
}

/** Error for a trace that could not be written after the run. */
export class TraceError extends SkeinError {
  override name = "TraceError";

  constructor(path: string, cause: unknown) {
    super(
      "environment",
      "trace-unwritten",
      `the trace was not written to ${path} (${describeError(cause).message}); all other results of the run are in its output folder; free some space, and trace a few steps with --trace and --steps 20`,
      { cause },
    );
  }
}

/** Error for a system limit on file handles or processes, which this process, its user or its container has reached. */
export class ExhaustedError extends SkeinError {
  override name = "ExhaustedError";

  constructor(code: "out-of-handles" | "out-of-processes", message: string, options?: ErrorOptions) {
    super("environment", code, message, options);
  }
}

/** Whether file handles or processes were exhausted. An immediate retry would fail the same way. */
export const isShortage = ({ code }: Pick<ErrorReport, "code">): boolean =>
  code === "out-of-handles" || code === "out-of-processes";

/**
 * Converts an error caused by exhausted file handles or processes to an `ExhaustedError` whose message suggests a fix;
 * returns other errors unchanged. Checks the message instead of the error code, because some errors of Node, and errors
 * that quote a system error, have no code for the shortage.
 */
const explainShortage = (error: Error): Error => {
  const [cause] = error.message.split(/[;\n]/) as [string];
  if (error instanceof SkeinError && isShortage(error)) return error; // already converted in another thread or process
  if (/\bE[MN]FILE\b|too many open files/i.test(cause))
    return new ExhaustedError(
      "out-of-handles",
      `no file handle is left (${cause}); raise the limit before the start, such as with: ulimit -n 4096`,
      { cause: error },
    );
  if (/^EAGAIN$|\bspawn \S+ EAGAIN\b|initialization failure: EAGAIN\b/.test(cause))
    return new ExhaustedError(
      "out-of-processes",
      `no further process or thread can be started (${cause}); raise ulimit -u or the pids limit of the container, or use fewer ranks and threads`,
      { cause: error },
    );
  return error;
};

/** Error for a process that was disconnected from a run because its certificate was revoked. */
export class RevokedError extends SkeinError {
  override name = "RevokedError";

  constructor(ranks: readonly number[], reason: string) {
    const who = ranks.length === 0 ? "" : `rank ${ranks.join(", ")}: `;
    super(
      "user",
      "peer-revoked",
      `${who}${reason}; make new files with skein-train certs renew, put them on hosts that you trust, and start the run again, which continues from its last checkpoint`,
    );
  }
}

/** An error as plain data, as sent by a thread or process. */
export interface ErrorReport {
  readonly kind: ErrorKind;
  readonly code: string;
  readonly message: string;
  readonly stack: string;
}

/** Maximum lengths of an error's message and stack, in characters. A user module may throw an error of any length. */
const [maxMessage, maxStack] = [8_000, 16_000];
/** Number of characters preserved at the end of a shortened message, which contains the suggested fix. */
const endLength = 1_000;

const shortened = (text: string, most: number): string => {
  const cut = text.length - most;
  return cut <= 0
    ? text
    : `${text.slice(0, most - endLength)}… (${cut} characters left out) …${text.slice(text.length - endLength)}`;
};

/**
 * Describes an error as plain data. Errors of Skein keep their kind, system errors become environment errors, and all
 * other errors are treated as bugs of Skein. Secrets in URLs are redacted, because user code may quote URLs.
 */
export const describeError = (error: unknown): ErrorReport => {
  const known = explainShortage(error instanceof Error ? error : new Error(String(error)));
  // Redacted before shortening, because the end of a password cannot be found in a truncated URL.
  const message = shortened(redactSecrets(known.message), maxMessage);
  const stack = shortened(redactSecrets(known.stack ?? known.message), maxStack);
  if (known instanceof SkeinError) return { kind: known.kind, code: known.code, message, stack };
  const code = (known as NodeJS.ErrnoException).code;
  return {
    kind: typeof code === "string" && /^E[A-Z]+$/.test(code) ? "environment" : "invariant",
    code: code ?? "internal",
    message,
    stack,
  };
};

/**
 * Converts a report from a thread or process back to an error.
 * @param where name of the thread or process.
 */
export const reviveError = ({ kind, code, message, stack }: ErrorReport, where: string): SkeinError => {
  const error = new SkeinError(kind, code, `${where}: ${message}`);
  error.stack = `${where}: ${stack}`;
  return error;
};

const isDiskFull = (code: string): boolean => code === "ENOSPC" || code === "EDQUOT";

/**
 * Returns a `DiskFullError` if an export failed because the disk is full. Its message says that nothing was written.
 * Returns all other errors unchanged.
 */
export const explainFullExport = (error: unknown, output: string): unknown => {
  const { code } = describeError(error);
  if (!isDiskFull(code)) return error;
  return new DiskFullError(
    `the disk of ${output} is full, so nothing was written (${code}), and an earlier file is unchanged; free some space, or name a file on another disk with --output`,
    { cause: error },
  );
};

/**
 * Returns a `DiskFullError` if a run stopped because the disk is full. Its message names the intact checkpoint, if
 * there is one, and says how to continue. Returns all other errors unchanged.
 */
export const explainDiskFull = (error: unknown, output: string, checkpoint: string | undefined): unknown => {
  const { code } = describeError(error);
  if (!isDiskFull(code)) return error;
  const before =
    checkpoint === undefined ? "nothing was saved before" : `the previous checkpoint is intact: ${checkpoint}`;
  const cure =
    checkpoint === undefined
      ? "free some space, or name a folder on another disk with --output"
      : `free some space and continue with: ${resumeLine(output)}`;
  return new DiskFullError(
    `the disk of ${output} is full, so the run was stopped (${code}); the unfinished checkpoint was removed, ${before}; ${cure}`,
    { cause: error },
  );
};

/**
 * Codes of errors that may disappear without a change of the job, such as a full disk or a resource that a previous
 * process still uses.
 */
const temporary: ReadonlySet<string> = new Set([
  "checkpoint-damaged",
  "disk-full",
  "join-late",
  "join-rank-taken",
  "link-rank-taken",
  "output-in-use",
  "port-in-use",
]);

/**
 * Codes of errors for missing parts of the installation. A retry fails the same way, so launchers must not restart the
 * run.
 */
const incurable: ReadonlySet<string> = new Set(["mpi-missing"]);

export const exitCodeOf = ({ kind, code }: Pick<ErrorReport, "kind" | "code">): number => {
  if (kind === "user" || incurable.has(code)) return exitCodes.usage;
  return temporary.has(code) ? exitCodes.temporary : exitCodes.failure;
};

/** Formats an error for the user: the message for errors that the user can fix, the stack for bugs of Skein. */
export const formatError = ({ kind, message, stack }: ErrorReport): string =>
  kind === "invariant" ? `internal error: ${stack}` : asTyped(message);
