import { ArgumentError } from "@skein/tensor-core";
import type { StepProgram } from "./step-program.ts";

/**
 * Steps of a bucket's exchange, as indices into the program: kernels that pack and encode, one message, and kernels
 * that decode.
 */
export interface ExchangeSteps {
  readonly encode: readonly number[];
  readonly start: number;
  readonly wait: number;
  readonly decode: readonly number[];
}

/** Matches the scope that traced jobs use for the exchange of a bucket, with the bucket's number. */
const exchangeScope = /^exchange-(\d+)(?:\/|$)/;

/**
 * Returns the number of the bucket to whose exchange a scope belongs; undefined for other scopes.
 * @example
 * ```ts
 * console.log(bucketOfScope("exchange-3")); // 3
 * ```
 */
export const bucketOfScope = (scope: string): number | undefined => {
  const found = exchangeScope.exec(scope);
  return found === null ? undefined : Number(found[1]);
};

/**
 * Returns the step indices of each bucket's exchange, by bucket. Buckets without messages, whose gradients are on one
 * rank only, are left out.
 */
export const stepsByBucket = (program: StepProgram): ReadonlyMap<number, readonly number[]> => {
  const stepIndices = new Map<number, number[]>();
  for (const [index, { scope }] of program.entries()) {
    const bucket = bucketOfScope(scope);
    if (bucket === undefined) continue;
    const own = stepIndices.get(bucket);
    if (own === undefined) stepIndices.set(bucket, [index]);
    else own.push(index);
  }
  const isSent = (index: number): boolean => program[index]!.kind === "start";
  return new Map([...stepIndices].filter(([, own]) => own.some(isSent)));
};

/**
 * Returns the exchange steps of each bucket, by bucket, for a program with one message per bucket.
 *
 * @throws ArgumentError if a bucket has no message, or several.
 */
export const exchangeSteps = (program: StepProgram): ReadonlyMap<number, ExchangeSteps> =>
  new Map(
    [...stepsByBucket(program)].map(([bucket, own]) => {
      const starts = own.filter((index) => program[index]!.kind === "start");
      const waits = own.filter((index) => program[index]!.kind === "wait");
      const [start, wait] = [starts[0], waits[0]];
      if (starts.length !== 1 || waits.length !== 1 || start === undefined || wait === undefined)
        throw new ArgumentError(
          `bucket ${bucket} is exchanged by ${starts.length} collectives, but only exchanges with one message can be rebucketed; price this compression separately for each plan`,
        );
      const kernels = own.filter((index) => program[index]!.kind === "kernel");
      return [
        bucket,
        {
          encode: kernels.filter((index) => index < start),
          start,
          wait,
          decode: kernels.filter((index) => index > wait),
        },
      ];
    }),
  );

/**
 * Checks that groups contain every bucket exactly once. @throws ArgumentError if a bucket is missing or occurs twice.
 */
export const checkGroups = (groups: readonly (readonly number[])[], buckets: Iterable<number>): void => {
  const [known, named] = [new Set(buckets), groups.flat()];
  if (named.length === known.size && new Set(named).size === named.length && named.every((bucket) => known.has(bucket)))
    return;
  throw new ArgumentError(
    `groups contain the buckets [${named.toSorted((a, b) => a - b).join(", ")}], but the program has [${[...known].join(", ")}]; put each bucket into exactly one group`,
  );
};
