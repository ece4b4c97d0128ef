import { SkeinError } from "@skein/tensor-core";
import { excerpt } from "@skein/tensor-core/backend";
import { z } from "zod";
import type { HardwareFile } from "./hardware.ts";

/** Error for an invalid hardware file: not JSON, an unsupported version, a missing field, or an impossible value. */
export class HardwareFileError extends SkeinError {
  override name = "HardwareFileError";

  constructor(problem: string) {
    super(
      "user",
      "hardware-file",
      `${problem}; measure the machine with "skein-profile calibrate", or correct that value`,
    );
  }
}

const positive = z.number().positive();
const seconds = z.number().nonnegative();
const bytes = z.number().int().positive();
const count = z.number().int().positive();

/**
 * Schema of a positive rate per second. The upper bound detects wrong units: no memory transfers an exabyte per second.
 */
const perSecond = positive.max(1e18);
const linkTimes = z.strictObject({
  secondsPerMessage: seconds.max(60),
  secondsPerByte: seconds.max(1),
});

const efficiency = z.strictObject({
  operator: z.string().min(1),
  flops: z.number().nonnegative(),
  bytes: z.number().nonnegative(),
  efficiency: positive.max(1000),
  relativeError: z.number().nonnegative().optional(),
  samples: count,
});

const running = z.strictObject({
  secondsPerStep: seconds.max(60),
  secondsPerCollective: seconds.max(1),
  collectiveLatencySeconds: seconds.max(1),
  secondsPerByteBeside: seconds.max(1e-3),
  overlapSlowdown: z.number().nonnegative().max(100).optional(),
  stepVariation: z.number().nonnegative().max(10),
  messageDelaySeconds: seconds.max(1),
});

const device = z
  .strictObject({
    name: z.string().min(1),
    kind: z.enum(["cpu", "gpu"]),
    source: z.string().min(1),
    flopsPerSecond: z.strictObject({
      f32: perSecond,
      tf32: perSecond.optional(),
      f16: perSecond.optional(),
      bf16: perSecond.optional(),
      f8: perSecond.optional(),
      i8: perSecond.optional(),
      i4: perSecond.optional(),
    }),
    memoryBytesPerSecond: perSecond,
    memoryBytes: bytes,
    kernelStartSeconds: seconds.max(1),
    readBack: z.strictObject({ startupSeconds: seconds.max(1), secondsPerByte: seconds.max(1) }).optional(),
    assumedEfficiency: positive.max(1),
    efficiencies: z.array(efficiency),
    running: running.optional(),
  })
  .refine(
    ({ flopsPerSecond: { f32 }, memoryBytesPerSecond }) =>
      f32 / memoryBytesPerSecond > 1e-3 && f32 / memoryBytesPerSecond < 1e6,
    {
      path: ["flopsPerSecond", "f32"],
      error:
        "is more than a million times memoryBytesPerSecond, or less than a thousandth of it: one of the two has a wrong unit",
    },
  );

const topology = z
  .strictObject({ ranks: count, ranksPerHost: count, hostsPerRack: count.optional() })
  .refine(({ ranks, ranksPerHost }) => ranks % Math.min(ranks, ranksPerHost) === 0, {
    path: ["ranksPerHost"],
    error: "must divide the ranks, because all hosts have equally many",
  });

const calibratedRun = z.strictObject({
  name: z.string().min(1),
  overlaps: z.boolean(),
  measuredSeconds: positive,
  predictedSeconds: positive,
  spread: z.number().nonnegative().optional(),
});

const hardwareFileSchema: z.ZodType<HardwareFile> = z
  .strictObject({
    format: z.literal("skein-hardware"),
    version: z.literal(1),
    name: z.string().min(1),
    description: z.string(),
    device,
    topology,
    links: z.strictObject({
      source: z.string().min(1),
      within: linkTimes,
      across: linkTimes,
      betweenRacks: linkTimes.optional(),
      growth: z
        .strictObject({ numHosts: z.number().min(1).max(1e6), sharePerDoubling: z.number().nonnegative().max(100) })
        .optional(),
      reduceSecondsPerByte: seconds.max(1),
      contention: z.strictObject({ penaltyPerFlow: z.number().nonnegative().max(100) }),
    }),
    calibration: z.strictObject({ links: z.string(), runs: z.array(calibratedRun) }).optional(),
  })
  .refine(
    ({ topology: { hostsPerRack }, links: { betweenRacks } }) =>
      (hostsPerRack === undefined) === (betweenRacks === undefined),
    {
      path: ["topology", "hostsPerRack"],
      error: "topology.hostsPerRack and links.betweenRacks need each other: give both, or neither",
    },
  );

const valueAt = (root: unknown, path: readonly PropertyKey[]): unknown =>
  path.reduce<unknown>(
    (value, key) =>
      typeof value === "object" && value !== null ? (value as Record<PropertyKey, unknown>)[key] : undefined,
    root,
  );

/** Maximum number of characters of a value to quote in an error message. */
const maxShown = 80;

/** Describes the first invalid field and its value in one line. */
const problemOf = (error: z.ZodError, content: unknown): string => {
  const { path, message } = error.issues[0]!;
  if (path.length === 0) return message;
  const value = valueAt(content, path);
  const valueText =
    value === undefined
      ? ""
      : ` is ${typeof value === "string" ? excerpt(value) : JSON.stringify(value).slice(0, maxShown)}`;
  return `${path.join(".")}${valueText}: ${message}`;
};

/**
 * Parses and validates a hardware file.
 *
 * @param name Name of the file, for error messages.
 * @throws HardwareFileError with a one-line message.
 * @example
 * ```ts
 * const text = formatHardwareFile(hardwareNamed("v100"));
 * console.log(parseHardwareFile(text, "v100.json").name); // v100
 * ```
 */
export const parseHardwareFile = (text: string, name: string): HardwareFile => {
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch (error) {
    throw new HardwareFileError(`${name} is not JSON (${(error as Error).message.replaceAll(/\s+/g, " ")})`);
  }
  const parsed = hardwareFileSchema.safeParse(content);
  if (!parsed.success)
    throw new HardwareFileError(`${name} is not a hardware file of version 1 (${problemOf(parsed.error, content)})`);
  return parsed.data;
};

/**
 * Formats a hardware description as JSON text for `parseHardwareFile`.
 *
 * @example
 * ```ts
 * console.log(formatHardwareFile(hardwareNamed("v100")).includes("skein-hardware")); // true
 * ```
 */
export const formatHardwareFile = (file: HardwareFile): string => `${JSON.stringify(file, undefined, 2)}\n`;
