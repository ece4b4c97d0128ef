import { type ErrorKind, SkeinError } from "@skein/tensor-core";
import { visibleLine } from "@skein/tensor-core/backend";
import { asTyped, resumeLine } from "./console/own-command.ts";
import { toldText } from "./console/told-text.ts";

/**
 * Exit codes of the command line. Whoever starts ranks again heeds them: wrong use fails again however often it is
 * tried, and what is `temporary` (EX_TEMPFAIL of BSD's sysexits) may go well once some time has passed.
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

/** Exit codes of a run that was asked to stop, and has saved: 128 + the number of the signal. */
export const stopCodes: readonly number[] = [
  exitCodes.hungUp,
  exitCodes.interrupted,
  exitCodes.quit,
  exitCodes.terminated,
];

/**
 * A job file or option that cannot be used. One line per fault: place, value, rule, cure. Values are quoted without
 * what addresses hold of secrets, and without what a terminal obeys.
 */
export class ConfigError extends SkeinError {
  override name = "ConfigError";

  constructor(faults: readonly string[]) {
    super("user", "config", faults.map((fault) => visibleLine(toldText(fault))).join("\n"));
  }
}

/**
 * A module or object of a user's, for a part of a job, that cannot be used: what it threw, or what it should have
 * given.
 */
export class ModuleError extends SkeinError {
  override name = "ModuleError";

  constructor(message: string, options?: ErrorOptions) {
    super("user", "module", message, options);
  }
}

/** A function of a user's that is called when something happens in a run, and does not come back. */
export class CallbackError extends SkeinError {
  override name = "CallbackError";

  constructor(message: string) {
    super("user", "callback", message);
  }
}

/** A checkpoint of another model, or none where one is needed. */
export class CheckpointError extends SkeinError {
  override name = "CheckpointError";

  constructor(message: string, options?: ErrorOptions) {
    super("user", "checkpoint", message, options);
  }
}

/** A checkpoint that is torn, altered, or cannot be read, as while the disk that it is on is away. */
export class DamagedCheckpointError extends SkeinError {
  override name = "DamagedCheckpointError";

  constructor(message: string, options?: ErrorOptions) {
    super("environment", "checkpoint-damaged", message, options);
  }
}

/** No room for what a run writes. */
export class DiskFullError extends SkeinError {
  override name = "DiskFullError";

  constructor(message: string, options?: ErrorOptions) {
    super("environment", "disk-full", message, options);
  }
}

/**
 * A loss or gradient that is not finite. Settings of the job lead there, and the same steps from the same checkpoint
 * lead there again, bit for bit: so it is the user's turn, and no launcher starts the job again.
 */
export class NonFiniteError extends SkeinError {
  override name = "NonFiniteError";

  constructor(message: string) {
    super("user", "non-finite", message);
  }
}

/**
 * A command that has done its work without what it was to come to: samples that were not learnt by heart, no batch, no
 * learning rate, no trial with a loss. Tried again it ends the same, so it is the user's turn.
 */
export class OutcomeError extends SkeinError {
  override name = "OutcomeError";

  constructor(code: "no-batch" | "no-rate" | "not-learnt" | "sweep-failed", message: string) {
    super("user", code, message);
  }
}

/** A run that ended early for a reason that lies in the run: not our bug, and not bad input. */
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

/** A trace that could not be written when the run was over. */
export class TraceError extends SkeinError {
  override name = "TraceError";

  constructor(path: string, cause: unknown) {
    super(
      "environment",
      "trace-unwritten",
      `the trace was not written to ${path} (${describeError(cause).message}); all else of the run is in its output folder; make room, and trace a few steps with --trace and --steps 20`,
      { cause },
    );
  }
}

/** The system lets this process, its user or its container have no more of something. */
export class ExhaustedError extends SkeinError {
  override name = "ExhaustedError";

  constructor(code: "out-of-handles" | "out-of-processes", message: string, options?: ErrorOptions) {
    super("environment", code, message, options);
  }
}

/** Whether the system lacked handles or processes: trying again at once would meet with the same. */
export const isShortage = ({ code }: Pick<ErrorReport, "code">): boolean =>
  code === "out-of-handles" || code === "out-of-processes";

/**
 * A shortage of file handles or processes with its cure, if that is what an error reports; any other error as it is.
 * Node and other errors that quote the system's name it in words alone.
 */
const explainShortage = (error: Error): Error => {
  const [what] = error.message.split(/[;\n]/) as [string];
  if (error instanceof SkeinError && isShortage(error)) return error; // it has come from another thread or process
  if (/\bE[MN]FILE\b|too many open files/i.test(what))
    return new ExhaustedError(
      "out-of-handles",
      `no file handle is left (${what}); raise the limit before the start, such as with: ulimit -n 4096`,
      { cause: error },
    );
  if (/^EAGAIN$|\bspawn \S+ EAGAIN\b|initialization failure: EAGAIN\b/.test(what))
    return new ExhaustedError(
      "out-of-processes",
      `no process or thread can be started any more (${what}); raise ulimit -u or the pids limit of the container, or use fewer ranks and threads`,
      { cause: error },
    );
  return error;
};

/** A process was cut off from a run, because its certificate was revoked. */
export class RevokedError extends SkeinError {
  override name = "RevokedError";

  constructor(ranks: readonly number[], reason: string) {
    const who = ranks.length === 0 ? "" : `rank ${ranks.join(", ")}: `;
    super(
      "user",
      "peer-revoked",
      `${who}${reason}; make new files with skein-train certs renew, put them on hosts that you trust, and start the run again, which goes on from its last checkpoint`,
    );
  }
}

/** An error as it crosses from a worker. */
export interface ErrorReport {
  readonly kind: ErrorKind;
  readonly code: string;
  readonly message: string;
  readonly stack: string;
}

/** Longest message and stack of an error, characters: a module of a user's may throw an error of any length. */
const [mostMessage, mostStack] = [8_000, 16_000];
/** What is kept of the end, where a message says what to do. */
const keptEnd = 1_000;

const shortened = (text: string, most: number): string => {
  const cut = text.length - most;
  return cut <= 0
    ? text
    : `${text.slice(0, most - keptEnd)}… (${cut} characters left out) …${text.slice(text.length - keptEnd)}`;
};

/**
 * What an error tells: ours keep their kind, the system's are environment errors, all others are our bugs. Code of
 * users may have quoted an address with a secret in it.
 */
export const describeError = (error: unknown): ErrorReport => {
  const known = explainShortage(error instanceof Error ? error : new Error(String(error)));
  // Secrets first: of an address that is cut nobody can see where its password ends.
  const message = shortened(toldText(known.message), mostMessage);
  const stack = shortened(toldText(known.stack ?? known.message), mostStack);
  if (known instanceof SkeinError) return { kind: known.kind, code: known.code, message, stack };
  const code = (known as NodeJS.ErrnoException).code;
  return {
    kind: typeof code === "string" && /^E[A-Z]+$/.test(code) ? "environment" : "invariant",
    code: code ?? "internal",
    message,
    stack,
  };
};

/** Bring a report from a worker back to life; `where` names the worker. */
export const reviveError = ({ kind, code, message, stack }: ErrorReport, where: string): SkeinError => {
  const error = new SkeinError(kind, code, `${where}: ${message}`);
  error.stack = `${where}: ${stack}`;
  return error;
};

const isDiskFull = (code: string): boolean => code === "ENOSPC" || code === "EDQUOT";

/** A full disk, told of a file that was to be written whole; any other error as it is. */
export const explainFullExport = (error: unknown, output: string): unknown => {
  const { code } = describeError(error);
  if (!isDiskFull(code)) return error;
  return new DiskFullError(
    `the disk of ${output} is full, so nothing was written there (${code}), and what was there before is whole; free some space, or name a file on another disk with --output`,
    { cause: error },
  );
};

/** A full disk, told with what is safe and how to go on; any other error as it is. */
export const explainDiskFull = (error: unknown, output: string, checkpoint: string | undefined): unknown => {
  const { code } = describeError(error);
  if (!isDiskFull(code)) return error;
  const before = checkpoint === undefined ? "nothing was saved before" : `the one before is intact: ${checkpoint}`;
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
 * What may be otherwise in a minute, although nobody changes the job: room on a disk, a place that an earlier start
 * still holds.
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

/** What people see: the message for errors that they can act on, the stack for our bugs. */
export const formatError = ({ kind, message, stack }: ErrorReport): string =>
  kind === "invariant" ? `internal error: ${stack}` : asTyped(message);
