import { ArgumentError, type RankSpans, type Span, type SpanArgs, tracks } from "@skein/tensor-core";
import { phases } from "@skein/tensor-core/backend";
// Imported as a namespace: importing the name `z` would include the messages of all languages, two thirds of the code
// that the page loads to read a trace.
import * as z from "zod";
import type { ProfileReport } from "./profile-report.ts";

const amount = z.number().nonnegative();
const count = z.int().nonnegative();
const share = amount.max(1);
const times = z.object({
  median: amount,
  mad: amount,
  n: z.int().positive(),
  effectiveN: z.number().positive().optional(),
});

/** Schema of a span's arguments. */
export const spanArgs: z.ZodType<SpanArgs> = z.object({
  operator: z.string().exactOptional(),
  scope: z.string().exactOptional(),
  phase: z.enum(phases).exactOptional(),
  shape: z.string().exactOptional(),
  elements: amount.exactOptional(),
  bytes: amount.exactOptional(),
  resultBytes: amount.exactOptional(),
  axis: z.string().exactOptional(),
  ranks: z.array(count).exactOptional(),
  to: count.exactOptional(),
  from: count.exactOptional(),
  priority: z.number().exactOptional(),
  algorithm: z.string().exactOptional(),
  signature: z.string().exactOptional(),
  exposedMilliseconds: amount.exactOptional(),
});

const span: z.ZodType<Span> = z
  .object({
    name: z.string(),
    track: z.enum(tracks),
    startSeconds: z.number(),
    endSeconds: z.number(),
    args: spanArgs.exactOptional(),
    flow: z.object({ id: count, part: z.enum(["begin", "through", "end"]) }).exactOptional(),
  })
  .refine(({ startSeconds, endSeconds }) => endSeconds >= startSeconds, {
    error: ({ input }) => {
      const { startSeconds, endSeconds } = input as Span;
      return `ends at ${endSeconds} s, before it starts at ${startSeconds} s`;
    },
  });

const rankSpans: z.ZodType<RankSpans> = z.object({ rank: count, process: z.string().optional(), spans: z.array(span) });

const operator = z.object({
  operator: z.string(),
  scope: z.string(),
  phase: z.enum([...phases, "other"]),
  calls: count,
  seconds: times,
  share,
  flops: amount.optional(),
  bytes: amount.optional(),
  rooflineSeconds: amount.optional(),
  boundBy: z.enum(["flops", "bytes"]).optional(),
  predictedSeconds: amount.optional(),
});

const outside = z.object({ kind: z.enum(["waiting", "data", "host", "between"]), seconds: times, share });

const collective = z.object({
  name: z.string(),
  kind: z.string(),
  axis: z.string(),
  algorithm: z.string().optional(),
  bytes: amount,
  seconds: times,
  exposedSeconds: times,
  predictedSeconds: amount.optional(),
});

const block = z
  .object({ name: z.string(), shape: z.string().optional(), bytes: amount, from: count, to: count })
  .refine(({ from, to }) => to >= from, {
    error: ({ input }) => {
      const { from, to } = input as { from: number; to: number };
      return `ends at node ${to}, before its first node ${from}`;
    },
  });

const reportSchema: z.ZodType<ProfileReport> = z.object({
  format: z.literal("skein-profile"),
  version: z.literal(1),
  job: z.string(),
  madeAt: z.iso.datetime({ offset: true }),
  machine: z.string(),
  backend: z.string(),
  ranks: z.int().positive(),
  steps: z.int().positive(),
  warmUpSteps: count,
  samplesPerStep: amount,
  step: times.extend({ median: z.number().positive() }),
  exposedSeconds: times,
  predictedStepSeconds: amount.optional(),
  device: z
    .object({ name: z.string(), flopsPerSecond: z.number().positive(), bytesPerSecond: z.number().positive() })
    .optional(),
  operators: z.array(operator),
  outside: z.array(outside),
  clock: z.string().optional(),
  collectives: z.array(collective),
  memory: z
    .object({ residentBytes: amount, liveBytes: z.array(amount), workspaceBytes: amount, blocks: z.array(block) })
    .optional(),
  timeline: z.array(rankSpans),
  predicted: z.array(rankSpans).optional(),
  advice: z.array(
    z.object({
      finding: z.string(),
      cure: z.string().optional(),
      change: z.record(z.string(), z.unknown()).optional(),
      saves: share.optional(),
      basis: z.string(),
    }),
  ),
});

/** Formats the path of a field: `operators[3].seconds.median`. */
const pathText = (path: readonly PropertyKey[]): string =>
  path.reduce<string>(
    (text, key) => (typeof key === "number" ? `${text}[${key}]` : text === "" ? String(key) : `${text}.${String(key)}`),
    "",
  );

/** Formats the value at a path, shortened so that the message fits into one line. */
const describeValue = (content: unknown, path: readonly PropertyKey[]): string => {
  const value = path.reduce<unknown>(
    (at, key) => (typeof at === "object" && at !== null ? (at as Record<PropertyKey, unknown>)[key] : undefined),
    content,
  );
  if (value === undefined) return "is missing";
  const text = JSON.stringify(value);
  return `is ${text.length > 60 ? `${text.slice(0, 57)}…` : text}`;
};

const cure = 'profile the job again with "skein-profile run"';

const refusal = (path: string, problem: string): ArgumentError =>
  new ArgumentError(`${path}: ${problem}; ${cure}`.replaceAll(/\s+/g, " "));

/**
 * Parses and validates the JSON of a report.
 *
 * @param path Path of the file, for error messages.
 * @throws ArgumentError with a one-line message about the first invalid field.
 */
export const parseReport = (text: string, path: string): ProfileReport => {
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch (error) {
    throw refusal(path, `is not JSON, or was cut off (${(error as Error).message})`);
  }
  const { format, version } = (content ?? {}) as { readonly format?: unknown; readonly version?: unknown };
  if (format !== "skein-profile")
    throw refusal(
      path,
      `is not a profile: its format ${describeValue(content, ["format"])}, but must be "skein-profile"`,
    );
  if (version !== 1)
    throw refusal(path, `its version ${describeValue(content, ["version"])}, but this program reads version 1`);
  const parsed = reportSchema.safeParse(content);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw refusal(
    path,
    `${pathText(issue!.path)} ${describeValue(content, issue!.path)}: ${issue!.message.replace(/^Invalid input: /, "")}`,
  );
};
