import { type ErrorKind, SkeinError } from "@skein/tensor-core";
import { visibleLine } from "@skein/tensor-core/backend";
import { asTyped, resumeLine } from "./console/own-command.ts";
import { redactSecrets } from "./console/redact-secrets.ts";

/**
 * Exit codes of the command line. Launchers that restart ranks use them: wrong usage (2) fails again on every attempt,
 * and `temporary` (EX_TEMPFAIL of BSD's sysexits) may succeed after some time.
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
 * A job file or option that cannot be used. One line per fault: location, value, rule, cure. In quoted values, secrets
 * in addresses are redacted, and terminal control characters are escaped.
 */
export class ConfigError extends SkeinError {
  override name = "ConfigError";

  constructor(faults: readonly string[]) {
    super("user", "config", faults.map((fault) => visibleLine(redactSecrets(fault))).join("\n"));
  }
}

/**
 * A user module or object for a part of a job that cannot be used; the message quotes its error, or describes what
 * it should have returned.
 */
export class ModuleError extends SkeinError {
  override name = "ModuleError";

  constructor(message: string, options?: ErrorOptions) {
    super("user", "module", message, options);
  }
}

/** A user callback that does not return within its timeout. */
export class CallbackError extends SkeinError {
  override name = "CallbackError";

  constructor(message: string) {
    super("user", "callback", message);
  }
}

/** A checkpoint of a different model, or no checkpoint when one is needed. */
export class CheckpointError extends SkeinError {
  override name = "CheckpointError";

  constructor(message: string, options?: ErrorOptions) {
    super("user", "checkpoint", message, options);
  }
}

/** A checkpoint that is truncated, altered, or cannot be read, such as on a disk that is temporarily unavailable. */
export class DamagedCheckpointError extends SkeinError {
  override name = "DamagedCheckpointError";

  constructor(message: string, options?: ErrorOptions) {
    super("environment", "checkpoint-damaged", message, options);
  }
}

/** A disk without space for the files of a run. */
export class DiskFullError extends SkeinError {
  override name = "DiskFullError";

  constructor(message: string, options?: ErrorOptions) {
    super("environment", "disk-full", message, options);
  }
}

/**
 * A loss or gradient that is not finite. The settings of the job cause it, and the same steps from the same checkpoint
 * reproduce it bit for bit: so the user has to act, and launchers do not restart the job.
 */
export class NonFiniteError extends SkeinError {
  override name = "NonFiniteError";

  constructor(message: string) {
    super("user", "non-finite", message);
  }
}

/**
 * A command that finished without the desired outcome: samples that were not memorized, no batch size, no learning
 * rate, no trial with a loss. Another attempt ends the same, so the user has to act.
 */
export class OutcomeError extends SkeinError {
  override name = "OutcomeError";

  constructor(code: "no-batch" | "no-rate" | "not-learnt" | "sweep-failed", message: string) {
    super("user", code, message);
  }
}

/** A run that ended early because of its environment, not because of a bug of ours or bad input. */
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

/** A trace that could not be written after the run. */
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

/** The system refuses this process, its user or its container more of a resource. */
export class ExhaustedError extends SkeinError {
  override name = "ExhaustedError";

  constructor(code: "out-of-handles" | "out-of-processes", message: string, options?: ErrorOptions) {
    super("environment", code, message, options);
  }
}

/** Whether the system lacked file handles or processes; an immediate retry would fail the same way. */
export const isShortage = ({ code }: Pick<ErrorReport, "code">): boolean =>
  code === "out-of-handles" || code === "out-of-processes";

/**
 * Converts an error about a shortage of file handles or processes to an `ExhaustedError` with a cure; returns other
 * errors unchanged. Errors of Node, and errors that quote the system's error, name the shortage only in their text.
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

/** A process was disconnected from a run because its certificate was revoked. */
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

/** An error as sent from a worker. */
export interface ErrorReport {
  readonly kind: ErrorKind;
  readonly code: string;
  readonly message: string;
  readonly stack: string;
}

/**
 * Maximum length of the message and the stack of an error, in characters; a user module may throw an error of any
 * length.
 */
const [maxMessage, maxStack] = [8_000, 16_000];
/** Characters kept at the end of a message, which contains the cure. */
const endLength = 1_000;

const shortened = (text: string, most: number): string => {
  const cut = text.length - most;
  return cut <= 0
    ? text
    : `${text.slice(0, most - endLength)}… (${cut} characters left out) …${text.slice(text.length - endLength)}`;
};

/**
 * Describes an error as plain data: our errors keep their kind, system errors are environment errors, all other errors
 * are bugs of ours. Secrets in addresses are redacted, because user code may quote addresses.
 */
export const describeError = (error: unknown): ErrorReport => {
  const known = explainShortage(error instanceof Error ? error : new Error(String(error)));
  // Redact before shortening: in a truncated address the end of its password cannot be found.
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

/** Converts a report from a worker back to an error; `where` names the worker. */
export const reviveError = ({ kind, code, message, stack }: ErrorReport, where: string): SkeinError => {
  const error = new SkeinError(kind, code, `${where}: ${message}`);
  error.stack = `${where}: ${stack}`;
  return error;
};

const isDiskFull = (code: string): boolean => code === "ENOSPC" || code === "EDQUOT";

/** Explains a full disk for a file that was to be written completely; returns other errors unchanged. */
export const explainFullExport = (error: unknown, output: string): unknown => {
  const { code } = describeError(error);
  if (!isDiskFull(code)) return error;
  return new DiskFullError(
    `the disk of ${output} is full, so nothing was written (${code}), and an earlier file is unchanged; free some space, or name a file on another disk with --output`,
    { cause: error },
  );
};

/** Explains a full disk with what is saved and how to continue; returns other errors unchanged. */
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
 * Errors that may disappear without a change of the job: a full disk, or a resource that an earlier start still holds.
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

/** Missing parts of the installation: a retry fails the same way, so launchers must not restart the run. */
const incurable: ReadonlySet<string> = new Set(["mpi-missing"]);

export const exitCodeOf = ({ kind, code }: Pick<ErrorReport, "kind" | "code">): number => {
  if (kind === "user" || incurable.has(code)) return exitCodes.usage;
  return temporary.has(code) ? exitCodes.temporary : exitCodes.failure;
};

/** Text for people: the message for errors that the user can act on, the stack for bugs of ours. */
export const formatError = ({ kind, message, stack }: ErrorReport): string =>
  kind === "invariant" ? `internal error: ${stack}` : asTyped(message);
