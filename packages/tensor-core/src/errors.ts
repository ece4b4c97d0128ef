/**
 * Category of an error, by the action that the error requires. "user": the caller must change the call. "environment":
 * retry or rebuild. "invariant": a bug that Skein's developers must fix.
 */
export type ErrorKind = "user" | "environment" | "invariant";

/**
 * Base class of every error that Skein throws. `code` is stable and safe to match on. The message states the problem,
 * the actual and the expected value, the rule and a suggested fix.
 */
export class SkeinError extends Error {
  // Set explicitly in each class, because a minifier shortens class names and therefore `new.target.name`.
  override name = "SkeinError";

  readonly code: string;
  readonly kind: ErrorKind;

  constructor(kind: ErrorKind, code: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.kind = kind;
    this.code = code;
  }
}

/**
 * Thrown if an operator does not accept the shapes or dtypes of its operands. The message names the operator and the
 * caller's line.
 */
export class ShapeError extends SkeinError {
  override name = "ShapeError";

  readonly op: string;

  constructor(op: string, rule: string) {
    const line = callersLine();
    super("user", "shape", `${op}: ${rule}${line === undefined ? "" : `\n    at ${line}`}`);
    this.op = op;
  }
}

/** Thrown if an option or argument has an invalid value. */
export class ArgumentError extends SkeinError {
  override name = "ArgumentError";

  constructor(message: string) {
    super("user", "argument", message);
  }
}

/**
 * Thrown if a graph contains an undefined operator, or if the definition of a user's operator violates its contract.
 * The message names the operator.
 */
export class OperatorError extends SkeinError {
  override name = "OperatorError";

  readonly op: string;

  constructor(op: string, rule: string) {
    super("user", "operator", `${op}: ${rule}`);
    this.op = op;
  }
}

/** Thrown if a backend does not support an operator, dtype or feature: when a graph is compiled, never during a run. */
export class UnsupportedError extends SkeinError {
  override name = "UnsupportedError";

  constructor(message: string) {
    super("user", "unsupported", message);
  }
}

/**
 * Thrown if the graphs of the ranks are incompatible, so that no order of collectives is valid on all ranks. Detected
 * when the graphs are compiled.
 */
export class CollectiveOrderError extends SkeinError {
  override name = "CollectiveOrderError";

  constructor(
    difference: string,
    cure = "ranks of a group must trace the same collectives, with the same sizes and priorities, in the same order, and use the result of each on all of them or on none, whatever else they compute: trace collectives on every rank, and send values from one rank to another by sendReceive",
  ) {
    super("user", "collective-order", `${difference}; ${cure}`);
  }
}

/** Thrown if a device array is used after it was freed or donated, or on a backend that does not own the array. */
export class ArrayStateError extends SkeinError {
  override name = "ArrayStateError";

  constructor(message: string) {
    super("user", "array-state", message);
  }
}

/** Thrown if an internal invariant is violated. Always a bug in Skein. */
export class InvariantError extends SkeinError {
  override name = "InvariantError";

  constructor(message: string) {
    super("invariant", "invariant", `${message} (this is a bug in Skein; please report it)`);
  }
}

// `import.meta.url` is undefined in a CommonJS bundle; `callersLine` then returns undefined.
const packageUrl: string = ((import.meta.url as string | undefined) ?? "").replace(/[^/]*$/, "");

/**
 * Returns the source location of the user's operator call: the first stack frame outside this package. Test files of
 * this package count as user code.
 */
export const callersLine = (): string | undefined => {
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = 60; // model code nests deeply; the default of ten frames would not reach the user's code
  const stack = new Error("where").stack ?? "";
  Error.stackTraceLimit = limit;
  for (const frame of stack.split("\n").slice(1)) {
    const location = frame
      .trim()
      .replace(/^at /, "")
      .replace(/^.*\((.*)\)$/, "$1");
    const own = location.includes(packageUrl) || location.includes(packageUrl.replace(/^file:\/\//, ""));
    if (!own && !location.startsWith("node:") && location !== "<anonymous>") return location;
    if (own && /\.test\.ts/.test(location)) return location;
  }
  return undefined;
};
