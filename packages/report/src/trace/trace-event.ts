import { type Span, type SpanArgs, type Track, tracks } from "@skein/tensor-core";
// Imported as a namespace: importing the name `z` would include all languages of messages, two thirds of what the page
// loads for a trace.
import * as z from "zod";
import { spanArgs } from "../parse-report.ts";

/** Facts about the run in a trace, in addition to the spans, so that a reader can name the job. */
export interface TraceFacts {
  readonly job: string;
  readonly backend: string;
  /** Samples of all ranks together. */
  readonly samplesPerStep: number;
  /** Time at which the trace was written, ISO 8601. */
  readonly madeAt: string;
}

const rank = z.int().nonnegative();
/** Time in microseconds. */
const time = z.number().min(-1e15).max(1e15);

/** A span event on a row of its rank. */
export interface SpanEvent {
  readonly ph: "X";
  readonly name: string;
  readonly cat: Track;
  /** Rank of the span. */
  readonly pid: number;
  readonly tid: number;
  readonly ts: number;
  readonly dur: number;
  readonly args?: SpanArgs;
}

/** A part of a flow. It follows the span to which it belongs. */
export interface FlowEvent extends Pick<SpanEvent, "pid" | "tid" | "ts"> {
  readonly ph: "s" | "t" | "f";
  readonly id: number;
}

/** Metadata of a rank's process. Row names, which only viewers need, are ignored. */
interface MetadataEvent {
  readonly ph: "M";
  readonly name: string;
  readonly pid: number;
  readonly args: { readonly labels?: string | undefined };
}

/** Events as written by `writeChromeTrace` of skein-train. */
export const traceEvent: z.ZodType<SpanEvent | FlowEvent | MetadataEvent> = z.discriminatedUnion("ph", [
  z.object({
    ph: z.literal("X"),
    name: z.string(),
    cat: z.enum(tracks),
    pid: rank,
    tid: z.int(),
    ts: time,
    dur: time.nonnegative(),
    args: spanArgs.exactOptional(),
  }),
  z.object({ ph: z.enum(["s", "t", "f"]), id: z.int().nonnegative(), pid: rank, tid: z.int(), ts: time }),
  z.object({ ph: z.literal("M"), name: z.string(), pid: rank, args: z.object({ labels: z.string().optional() }) }),
]);

/** Facts before the events. Names are restricted as in job files, because they become folder names. */
export const traceFacts: z.ZodType<TraceFacts> = z.object({
  job: z
    .string()
    .max(100)
    .regex(/^[A-Za-z0-9][A-Za-z0-9._-]*$/, "a name is made of letters, digits, dot, dash and underscore"),
  backend: z.string(),
  samplesPerStep: z.number().nonnegative(),
  madeAt: z.iso.datetime({ offset: true }),
});

const secondsOf = (microseconds: number): number => Math.round(1000 * microseconds) / 1e9;

/** The span of an event, exact to the written nanosecond. */
export const spanOf = ({ name, cat: track, ts, dur, args }: SpanEvent): Span => ({
  name,
  track,
  startSeconds: secondsOf(ts),
  endSeconds: (Math.round(1000 * ts) + Math.round(1000 * dur)) / 1e9,
  ...(args && { args }),
});

const parts = { s: "begin", t: "through", f: "end" } as const;

export const flowOf = ({ id, ph }: FlowEvent): NonNullable<Span["flow"]> => ({ id, part: parts[ph] });
