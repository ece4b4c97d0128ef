import { ArgumentError } from "@skein/tensor-core";
import type { StepProgram } from "./step-program.ts";

/**
 * What a bucket's exchange is made of: kernels that pack and encode, a message, kernels that decode; their places in
 * the program.
 */
export interface ExchangePlaces {
  readonly encode: readonly number[];
  readonly start: number;
  readonly wait: number;
  readonly decode: readonly number[];
}

/** The scope of bucket i's exchange, as jobs trace it. */
const exchangeScope = /^exchange-(\d+)(?:\/|$)/;

/** The number of the bucket whose exchange a scope belongs to; undefined where it is none. */
export const bucketOfScope = (scope: string): number | undefined => {
  const found = exchangeScope.exec(scope);
  return found === null ? undefined : Number(found[1]);
};

/**
 * Places of what belongs to the exchange of each bucket, by bucket. What is computed of a bucket without messages,
 * whose gradients a rank has alone, belongs to no exchange.
 */
export const placesByBucket = (program: StepProgram): ReadonlyMap<number, readonly number[]> => {
  const places = new Map<number, number[]>();
  for (const [index, { scope }] of program.entries()) {
    const bucket = bucketOfScope(scope);
    if (bucket === undefined) continue;
    const own = places.get(bucket);
    if (own === undefined) places.set(bucket, [index]);
    else own.push(index);
  }
  const isSent = (index: number): boolean => program[index]!.kind === "start";
  return new Map([...places].filter(([, own]) => own.some(isSent)));
};

/**
 * The exchanges of a program that was made with one message for each bucket, by bucket.
 *
 * @throws ArgumentError where a bucket has none, or several.
 */
export const exchangePlaces = (program: StepProgram): ReadonlyMap<number, ExchangePlaces> =>
  new Map(
    [...placesByBucket(program)].map(([bucket, own]) => {
      const starts = own.filter((index) => program[index]!.kind === "start");
      const waits = own.filter((index) => program[index]!.kind === "wait");
      const [start, wait] = [starts[0], waits[0]];
      if (starts.length !== 1 || waits.length !== 1 || start === undefined || wait === undefined)
        throw new ArgumentError(
          `bucket ${bucket} is exchanged by ${starts.length} collectives; only exchanges of one message can be bucketed anew: price this compression with each plan by itself`,
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

/** @throws ArgumentError for groups that do not hold every bucket once. */
export const checkGroups = (groups: readonly (readonly number[])[], buckets: Iterable<number>): void => {
  const [known, named] = [new Set(buckets), groups.flat()];
  if (named.length === known.size && new Set(named).size === named.length && named.every((bucket) => known.has(bucket)))
    return;
  throw new ArgumentError(
    `groups hold the buckets [${named.toSorted((a, b) => a - b).join(", ")}], but the program has [${[...known].join(", ")}]; each belongs to one group`,
  );
};
