import { sha256 } from "@skein/cli/node";
import type { AggregateContext, Aggregator, Bucket } from "@skein/compressors";
import type { ModuleKey } from "@skein/job/node";
import type { OwnOptimizer, Task } from "@skein/step/node";
import type { Mesh, Schedule, Tensor } from "@skein/tensor-core";
import { checkedCompression } from "./checked-compression.ts";
import { checkedOptimizer, checkedSchedule, type Origin } from "./checked-optimizer.ts";
import type { CompressionContext, OptimizerContext, OwnMetrics, ScheduleContext } from "./factories.ts";
import { givenName, givenObject } from "./program-objects.ts";
import { checkedMetrics } from "./checked-metrics.ts";
import { definitionOf } from "./define.ts";
import { recorded, type Recording, replayed, type TracedFunction } from "./recordings.ts";

/** Job keys whose values may be objects of the program. Ranks receive these objects as graphs. */
export const partKeys = ["learningRate.schedule", "optimizer", "compression", "metrics"] as const;

type PartKey = (typeof partKeys)[number];

/** Objects and factories that a program passed, by job key. */
export type ProgramObjects = Readonly<Partial<Record<PartKey, unknown>>>;

/**
 * Functions that create the schedule, the optimizer, the compression and the metrics of a job with `kind: program`,
 * from objects of the program or from recordings.
 */
export interface ProgramParts {
  schedule(context: ScheduleContext): Promise<Schedule>;
  optimizer(context: OptimizerContext): Promise<OwnOptimizer>;
  compression(context: CompressionContext): Promise<Aggregator>;
  metrics(task: Task): Promise<OwnMetrics>;
}

/**
 * Functions that create the schedule, optimizer, compression and metrics from a program's objects, and recordings of
 * the functions of these objects.
 */
export interface GivenParts {
  readonly parts: ProgramParts;
  readonly recordings: PartRecordings;
}

/**
 * Properties of a program's schedule, optimizer, compression and metrics that their recorded graphs do not contain.
 * Plain data, which can be sent to threads.
 */
interface Facts {
  rate?: number;
  elementwise?: boolean;
  compression?: Pick<Aggregator, "biased" | "scope" | "name">;
  ratios?: OwnMetrics["metrics"];
}

/**
 * Recordings of a program's schedule, optimizer, compression and metrics: graphs of their functions, by names such as
 * `optimizer: update`. Recordings are plain data, which can be sent to the threads of ranks.
 */
export interface PartRecordings {
  readonly functions: Readonly<Record<FunctionName, Recording>>;
  /** Number of bytes that a compression sends for a bucket. The key is made of the bucket and the number of ranks. */
  readonly bytesSent: Map<string, number>;
  readonly facts: Facts;
}

const functionNames = [
  "learningRate.schedule",
  "optimizer: init",
  "optimizer: update",
  "compression: init",
  "compression: aggregate",
  "metrics: rows",
] as const;

type FunctionName = (typeof functionNames)[number];

const noRecordings = (): PartRecordings => ({
  functions: Object.fromEntries(functionNames.map((name) => [name, new Map()])) as never,
  bytesSent: new Map(),
  facts: {},
});

const originOf = (key: ModuleKey): Origin => ({ what: givenName(key), folder: process.cwd() });

/**
 * Functions of a program's schedule, optimizer, compression and metrics: traced functions by name, and the number of
 * bytes that the compression sends.
 */
interface Functions {
  readonly call: (name: FunctionName) => TracedFunction;
  readonly bytesSent: Aggregator["bytesSent"];
}

const scheduleOf = ({ rate }: Facts, { call }: Functions): Schedule =>
  rate ?? ((step) => call("learningRate.schedule")([step]) as Tensor);

const optimizerOf = ({ elementwise = false }: Facts, { call }: Functions): OwnOptimizer => ({
  elementwise,
  init: (params) => call("optimizer: init")([params]),
  update: (updates, state, { params }) => call("optimizer: update")([updates, state, params]) as never,
});

const compressionOf = ({ compression }: Facts, { call, bytesSent }: Functions): Aggregator => ({
  ...compression!,
  init: (bucket) => call("compression: init")([], bucket),
  aggregate: (gradient, state, bucket, { key, rank, step, ...beside }) =>
    call("compression: aggregate")(
      [
        gradient,
        state,
        Object.fromEntries(Object.entries({ key, rank, step }).filter(([, draw]) => draw !== undefined)),
      ],
      { bucket, ...beside },
    ) as never,
  bytesSent,
});

const metricsOf = ({ ratios }: Facts, { call }: Functions): OwnMetrics => ({
  rows: ({ logits, batch }) => call("metrics: rows")([logits, batch]) as never,
  metrics: ratios!,
});

/**
 * Creates the schedule, optimizer, compression and metrics of a job from recordings, as ranks do. The contexts that
 * factories usually receive are ignored, because the recorded graphs already depend on them.
 */
export const partsOfRecordings = ({ functions, bytesSent, facts }: PartRecordings): ProgramParts => {
  const known: Functions = {
    call: (name) => replayed(functions[name], `train(): ${name}`),
    bytesSent: (bucket, worldSize) => bytesSent.get(bytesKey(bucket, worldSize))!,
  };
  return {
    schedule: async () => scheduleOf(facts, known),
    optimizer: async () => optimizerOf(facts, known),
    compression: async () => compressionOf(facts, known),
    metrics: async () => metricsOf(facts, known),
  };
};

const bytesKey = (bucket: Bucket, worldSize: number): string => JSON.stringify([bucket.tensors, worldSize]);

/** Returns a function that calls a factory at most once, and then returns the same result. */
const once = <Context, Part>(make: (context: Context) => Promise<Part>): ((context: Context) => Promise<Part>) => {
  let made: Promise<Part> | undefined;
  return (context) => (made ??= make(context));
};

/**
 * Creates the schedule, optimizer, compression and metrics of a job from a program's objects, and records each function
 * when it is called. The recordings are complete when a step that uses all of these objects has been traced.
 */
export const partsOfObjects = (objects: ProgramObjects, mesh: Mesh): GivenParts => {
  const recordings = noRecordings();
  const { facts } = recordings;
  const functions = new Map<FunctionName, (args: readonly never[], beside: never) => unknown>();
  let own: Aggregator | undefined;
  const live: Functions = {
    call: (name) => recorded(recordings.functions[name], `train(): ${name}`, mesh, functions.get(name)!),
    bytesSent: (bucket, worldSize) => {
      const bytes = own!.bytesSent(bucket, worldSize);
      recordings.bytesSent.set(bytesKey(bucket, worldSize), bytes);
      return bytes;
    },
  };
  const objectOf = (key: PartKey, context: unknown): Promise<unknown> => givenObject(key, objects[key], context);
  const parts: ProgramParts = {
    schedule: once(async (context) => {
      const key = "learningRate.schedule";
      const given = objects[key];
      // A function without definition is a schedule, not a factory, like built-in schedules.
      const made =
        typeof given === "function" && definitionOf(given) !== undefined ? await objectOf(key, context) : given;
      const schedule = checkedSchedule(made, originOf(key));
      if (typeof schedule === "number") facts.rate = schedule;
      else functions.set(key, ([step]) => schedule(step!));
      return scheduleOf(facts, live);
    }),
    optimizer: once(async (context) => {
      const { init, update, elementwise } = checkedOptimizer(
        await objectOf("optimizer", context),
        originOf("optimizer"),
      );
      facts.elementwise = elementwise === true;
      functions.set("optimizer: init", ([params]) => init(params!));
      functions.set("optimizer: update", ([updates, state, params]) => update(updates!, state!, { params: params! }));
      return optimizerOf(facts, live);
    }),
    compression: once(async (context) => {
      own = checkedCompression(await objectOf("compression", context), originOf("compression"));
      const { biased, scope, name, init, aggregate } = own;
      facts.compression = { biased, scope, ...(name !== undefined && { name }) };
      functions.set("compression: init", (_, bucket) => init(bucket));
      functions.set("compression: aggregate", ([gradient, state, draws], beside) => {
        const { bucket, ...context } = beside as unknown as { readonly bucket: Bucket } & AggregateContext;
        return aggregate(gradient!, state!, bucket, { ...(draws as unknown as object), ...context });
      });
      return compressionOf(facts, live);
    }),
    metrics: once(async (task) => {
      const { rows, metrics } = checkedMetrics(await objectOf("metrics", task), givenName("metrics"));
      facts.ratios = metrics;
      functions.set("metrics: rows", ([logits, batch]) => rows({ logits: logits!, batch: batch! }));
      return metricsOf(facts, live);
    }),
  };
  return { parts, recordings };
};

/**
 * Computes the SHA-256 of the recordings of one object (schedule, optimizer, compression or metrics), which identifies
 * the object.
 */
export const partDigest = (key: PartKey, { functions, facts }: PartRecordings): string =>
  sha256(
    JSON.stringify([
      key === "learningRate.schedule" ? facts.rate : key === "metrics" ? facts.ratios : facts.compression,
      functionNames.filter((name) => name.startsWith(key)).map((name) => [name, [...functions[name]]]),
    ]),
  );
