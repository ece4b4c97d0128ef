/** Whose turn it is to act: the caller, the surroundings (retry or rebuild), or us. */
export type ErrorKind = "user" | "environment" | "invariant";

/**
 * Base of every error that Skein throws. `code` is stable and may be matched on; the message says what happened,
 * both values, the rule and the cure.
 */
export class SkeinError extends Error {
  // Written out in each class: a minifier shortens the names of classes, and with them `new.target.name`.
  override name = "SkeinError";

  readonly code: string;
  readonly kind: ErrorKind;

  constructor(kind: ErrorKind, code: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.kind = kind;
    this.code = code;
  }
}

/** Shapes or dtypes that an operator cannot take. Names the operator and the caller's line. */
export class ShapeError extends SkeinError {
  override name = "ShapeError";

  readonly op: string;

  constructor(op: string, rule: string) {
    const line = callersLine();
    super("user", "shape", `${op}: ${rule}${line === undefined ? "" : `\n    at ${line}`}`);
    this.op = op;
  }
}

/** A value that an option or argument cannot take. */
export class ArgumentError extends SkeinError {
  override name = "ArgumentError";

  constructor(message: string) {
    super("user", "argument", message);
  }
}

/**
 * A graph names an operator that nobody has defined, or what a user's operator was defined with breaks its own
 * contract. Names the operator.
 */
export class OperatorError extends SkeinError {
  override name = "OperatorError";

  readonly op: string;

  constructor(op: string, rule: string) {
    super("user", "operator", `${op}: ${rule}`);
    this.op = op;
  }
}

/**
 * An operator, dtype or feature that a backend lacks; raised when a graph is compiled, never in the middle of a run.
 */
export class UnsupportedError extends SkeinError {
  override name = "UnsupportedError";

  constructor(message: string) {
    super("user", "unsupported", message);
  }
}

/**
 * The graphs of a world's ranks do not fit together: no order of their collectives suits all. Raised when they are
 * compiled.
 */
export class CollectiveOrderError extends SkeinError {
  override name = "CollectiveOrderError";

  constructor(
    difference: string,
    cure = "ranks of a group must trace the same collectives, with the same sizes and priorities, in the same order, and use the result of each on all of them or on none, whatever they compute beside: trace them on every rank, and what one rank has for another by sendReceive",
  ) {
    super("user", "collective-order", `${difference}; ${cure}`);
  }
}

/** A device array was used after it was freed or given away, or on a backend that is not its own. */
export class ArrayStateError extends SkeinError {
  override name = "ArrayStateError";

  constructor(message: string) {
    super("user", "array-state", message);
  }
}

/** A broken promise of our own. Seeing one is a bug in Skein. */
export class InvariantError extends SkeinError {
  override name = "InvariantError";

  constructor(message: string) {
    super("invariant", "invariant", `${message} (this is a bug in Skein; please report it)`);
  }
}

// Undefined in a bundle for CommonJS, which has no place of its own; then no line is found.
const here: string = ((import.meta.url as string | undefined) ?? "").replace(/[^/]*$/, "");

/**
 * The first line of the stack outside this package: where the user called the operator. Tests of this package count as
 * users.
 */
export const callersLine = (): string | undefined => {
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = 60; // model code nests scopes and transformations; ten frames would not reach the user
  const stack = new Error("where").stack ?? "";
  Error.stackTraceLimit = limit;
  for (const frame of stack.split("\n").slice(1)) {
    const place = frame
      .trim()
      .replace(/^at /, "")
      .replace(/^.*\((.*)\)$/, "$1");
    const own = place.includes(here) || place.includes(here.replace(/^file:\/\//, ""));
    if (!own && !place.startsWith("node:") && place !== "<anonymous>") return place;
    if (own && /\.test\.ts/.test(place)) return place;
  }
  return undefined;
};
