import { type Span, type SpanArgs, type Track, tracks } from "@skein/tensor-core";
// Imported as a namespace: importing the name `z` would include the messages of all languages, two thirds of the code
// that the page loads to read a trace.
import * as z from "zod";
import { spanArgs } from "../parse-report.ts";

/** Metadata of a run at the beginning of its trace, so that a reader can identify the job. */
export interface TraceFacts {
  readonly job: string;
  readonly backend: string;
  /** Number of samples per step, summed over all ranks. */
  readonly samplesPerStep: number;
  /** Time when the trace was written, ISO 8601. */
  readonly madeAt: string;
}

const rank = z.int().nonnegative();
/** Schema of a time in microseconds. */
const time = z.number().min(-1e15).max(1e15);

/** Event for a span, on a row of its rank. */
export interface SpanEvent {
  readonly ph: "X";
  readonly name: string;
  readonly cat: Track;
  /** Rank number. */
  readonly pid: number;
  readonly tid: number;
  readonly ts: number;
  readonly dur: number;
  readonly args?: SpanArgs;
}

/** Event for the start or the end of a flow. The event follows the span that it belongs to. */
export interface FlowEvent extends Pick<SpanEvent, "pid" | "tid" | "ts"> {
  readonly ph: "s" | "t" | "f";
  readonly id: number;
}

/** Event with metadata of a rank's process. Row names, which only viewers need, are ignored. */
interface MetadataEvent {
  readonly ph: "M";
  readonly name: string;
  readonly pid: number;
  readonly args: { readonly labels?: string | undefined };
}

/** Schema of the events that `writeChromeTrace` of skein-train writes. */
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

/**
 * Schema of the run metadata before the events. Names are restricted as in job files, because they become folder names.
 */
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

/** Returns the span of an event. Times are exact to the nanosecond, as they were written. */
export const spanOf = ({ name, cat: track, ts, dur, args }: SpanEvent): Span => ({
  name,
  track,
  startSeconds: secondsOf(ts),
  endSeconds: (Math.round(1000 * ts) + Math.round(1000 * dur)) / 1e9,
  ...(args && { args }),
});

const parts = { s: "begin", t: "through", f: "end" } as const;

export const flowOf = ({ id, ph }: FlowEvent): NonNullable<Span["flow"]> => ({ id, part: parts[ph] });
