import { ArgumentError } from "@skein/tensor-core";
import { checkRouting, type Routing } from "./routing.ts";

/** Routing of a layer's tokens in one step. */
export interface RoutedStep {
  readonly step: number;
  readonly routing: Routing;
}

/** Token choices of one layer in the most recent steps; 4 · T · K bytes per step. */
export interface RoutingRecord {
  /** Maximum number of steps in the record. */
  readonly maxSteps: number;
  /** Recorded steps, oldest step first. */
  readonly steps: readonly RoutedStep[];
}

/**
 * Returns an empty record. Throws ArgumentError if the number of steps is not a positive integer.
 *
 * @example
 * ```ts
 * console.log(routingRecord(100).steps); // []
 * ```
 */
export const routingRecord = (maxSteps: number): RoutingRecord => {
  if (!Number.isInteger(maxSteps) || maxSteps < 1)
    throw new ArgumentError(`routingRecord: maxSteps is ${maxSteps}; use a whole number from 1`);
  return { maxSteps, steps: [] };
};

/**
 * Records a further step, and drops the oldest step if the record is full. The record refers to the choices without
 * copying them.
 *
 * @throws ArgumentError if the step is not after the last step, and under the conditions of `checkRouting`.
 * @example
 * ```ts
 * const routing = { numExperts: 2, numChoices: 1, choices: Int32Array.of(0, 0, 1) };
 * console.log(recordRouting(routingRecord(100), 0, routing).steps.length); // 1
 * ```
 */
export const recordRouting = ({ maxSteps, steps }: RoutingRecord, step: number, routing: Routing): RoutingRecord => {
  checkRouting(routing);
  const last = steps.at(-1)?.step ?? -1;
  if (!Number.isInteger(step) || step <= last)
    throw new ArgumentError(
      `recordRouting: step ${step} does not follow step ${last}; use whole numbers in increasing order`,
    );
  return { maxSteps, steps: [...steps, { step, routing }].slice(-maxSteps) };
};

/** Routing record as plain JSON data. */
export interface RoutingRecordJson {
  readonly maxSteps: number;
  readonly steps: readonly {
    readonly step: number;
    readonly numExperts: number;
    readonly numChoices: number;
    readonly choices: readonly number[];
  }[];
}

/**
 * Converts a record for `JSON.stringify`, without loss; inverse of `routingRecordFromJson`.
 *
 * @example
 * ```ts
 * const routing = { numExperts: 2, numChoices: 1, choices: Int32Array.of(0, 0, 1) };
 * const json = routingRecordToJson(recordRouting(routingRecord(1), 0, routing));
 * console.log(JSON.stringify(json.steps[0]!.choices)); // [0,0,1]
 * ```
 */
export const routingRecordToJson = ({ maxSteps, steps }: RoutingRecord): RoutingRecordJson => ({
  maxSteps,
  steps: steps.map(({ step, routing }) => ({ step, ...routing, choices: [...routing.choices] })),
});

/**
 * Parses a record. Throws ArgumentError if the record has too many steps, and under the conditions of `routingRecord`
 * and `recordRouting`.
 * @example
 * ```ts
 * const record = routingRecordFromJson(routingRecordToJson(routingRecord(100)));
 * console.log(record.maxSteps); // 100
 * ```
 */
export const routingRecordFromJson = ({ maxSteps, steps }: RoutingRecordJson): RoutingRecord => {
  const empty = routingRecord(maxSteps);
  if (steps.length > maxSteps)
    throw new ArgumentError(
      `routingRecordFromJson: ${steps.length} steps exceed maxSteps ${maxSteps}; raise maxSteps or drop the oldest steps`,
    );
  return steps.reduce(
    (record, { step, numExperts, numChoices, choices }) =>
      recordRouting(record, step, { numExperts, numChoices, choices: wholeNumbers(step, choices) }),
    empty,
  );
};

/**
 * Converts choices to an Int32Array. Throws ArgumentError if a choice is not an integer, because Int32Array would
 * silently truncate fractions.
 */
const wholeNumbers = (step: number, choices: readonly number[]): Int32Array => {
  const wrong = choices.find((choice) => !Number.isInteger(choice));
  if (wrong !== undefined)
    throw new ArgumentError(
      `routingRecordFromJson: step ${step} has choice ${wrong}; choices must be whole numbers, −1 for a dropped choice`,
    );
  return Int32Array.from(choices);
};

export interface ReplayRoutingsOptions {
  /** First step to replay. Default: the oldest recorded step. */
  readonly from?: number;
  /** Number of passes over the record; step numbers continue. Default: 1. */
  readonly numTimes?: number;
}

/**
 * Iterates over recorded routings as if their steps ran again, as input for a planner or to reproduce a load.
 *
 * @example
 * ```ts
 * const routing = { numExperts: 2, numChoices: 1, choices: Int32Array.of(0, 0, 1) };
 * const record = recordRouting(routingRecord(100), 0, routing);
 * const replayed = [...replayRoutings(record, { numTimes: 2 })];
 * console.log(replayed.map((step) => expertCounts(step.routing))); // [[2, 1], [2, 1]]
 * ```
 */
export function* replayRoutings(
  { steps }: RoutingRecord,
  { from = 0, numTimes = 1 }: ReplayRoutingsOptions = {},
): Generator<RoutedStep, void, undefined> {
  const replayed = steps.filter(({ step }) => step >= from);
  const [first, last] = [replayed[0]?.step ?? 0, replayed.at(-1)?.step ?? 0];
  for (let time = 0; time < numTimes; time++)
    for (const { step, routing } of replayed) yield { step: step + time * (last - first + 1), routing };
}
