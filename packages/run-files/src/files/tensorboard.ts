import { closeSync, openSync, writeSync } from "node:fs";
import { join } from "node:path";
import { maskedCrc32c } from "@skein/collectives";
import type { Histogram } from "@skein/report";
import { edgesOf } from "./histogram.ts";

// Encodes three protobuf messages without a library: loading the writer of @bufbuild/protobuf 2.17 takes 9 ms of
// processor time in each process of a run, and 3 MB on disk. `tensorboard.test.ts` reads the output with that library.

/** Wire types of protocol buffers. */
const wire = { varint: 0, fixed64: 1, bytes: 2, fixed32: 5 } as const;

const varint = (value: number): number[] => {
  const bytes: number[] = [];
  let rest = BigInt(value);
  for (; rest > 127n; rest >>= 7n) bytes.push(Number(rest & 127n) | 128);
  return [...bytes, Number(rest)];
};

const key = (field: number, type: number): number[] => varint(field * 8 + type);

const double = (value: number): Uint8Array => new Uint8Array(new Float64Array([value]).buffer);

const float = (value: number): Uint8Array => new Uint8Array(new Float32Array([value]).buffer);

const lengthDelimited = (field: number, content: ArrayLike<number>): number[] => [
  ...key(field, wire.bytes),
  ...varint(content.length),
  ...Array.from(content),
];

const text = (value: string): Uint8Array => new TextEncoder().encode(value);

/** Encodes the `tensorflow.Event` at the beginning of an event file. */
export const encodeVersionEvent = (wallSeconds: number): Uint8Array =>
  Uint8Array.from([...key(1, wire.fixed64), ...double(wallSeconds), ...lengthDelimited(3, text("brain.Event:2"))]);

/**
 * Encodes a `tensorflow.Event` with one scalar per tag: wall_time = 1, step = 2, summary = 5 { value = 1 { tag = 1,
 * simple_value = 2 } }. Source: TensorFlow, `core/util/event.proto`, `core/framework/summary.proto`.
 */
export const encodeScalarEvent = (
  wallSeconds: number,
  step: number,
  scalars: Readonly<Record<string, number>>,
): Uint8Array =>
  encodeSummaryEvent(
    wallSeconds,
    step,
    Object.entries(scalars).flatMap(([tag, value]) =>
      lengthDelimited(1, [...lengthDelimited(1, text(tag)), ...key(2, wire.fixed32), ...float(value)]),
    ),
  );

const encodeSummaryEvent = (wallSeconds: number, step: number, values: readonly number[]): Uint8Array =>
  Uint8Array.from([
    ...key(1, wire.fixed64),
    ...double(wallSeconds),
    ...key(2, wire.varint),
    ...varint(step),
    ...lengthDelimited(5, values),
  ]);

const doubles = (values: readonly number[]): Uint8Array => new Uint8Array(new Float64Array(values).buffer);

/**
 * Encodes a `tensorflow.HistogramProto`: min = 1, max = 2, num = 3, sum = 4, sum_squares = 5, and packed doubles:
 * bucket_limit = 6, the upper edges of bins, and bucket = 7, the counts of bins. Source: TensorFlow,
 * `core/framework/summary.proto`; in later versions `tsl/protobuf/histogram.proto`.
 */
const encodeHistogram = (histogram: Histogram): number[] => {
  const { min, max, mean, norm, size, nonFinite, counts } = histogram;
  const finite = size - nonFinite;
  const numbers = [min ?? 0, max ?? 0, finite, (mean ?? 0) * finite, (norm ?? 0) ** 2];
  return [
    ...numbers.flatMap((value, i) => [...key(i + 1, wire.fixed64), ...double(value)]),
    ...lengthDelimited(6, doubles(edgesOf(histogram).slice(1))),
    ...lengthDelimited(7, doubles(counts)),
  ];
};

/** Encodes a `tensorflow.Event` with one histogram per tag: summary = 5 { value = 1 { tag = 1, histo = 5 } }. */
export const encodeHistogramEvent = (
  wallSeconds: number,
  step: number,
  histograms: Readonly<Record<string, Histogram>>,
): Uint8Array =>
  encodeSummaryEvent(
    wallSeconds,
    step,
    Object.entries(histograms).flatMap(([tag, histogram]) =>
      lengthDelimited(1, [...lengthDelimited(1, text(tag)), ...lengthDelimited(5, encodeHistogram(histogram))]),
    ),
  );

/**
 * Encodes one TFRecord: length (u64), masked CRC-32C of the length, data, masked CRC-32C of the data; little-endian.
 */
export const frameRecord = (data: Uint8Array): Uint8Array => {
  const frame = new Uint8Array(8 + 4 + data.length + 4);
  const view = new DataView(frame.buffer);
  view.setBigUint64(0, BigInt(data.length), true);
  view.setUint32(8, maskedCrc32c(frame.subarray(0, 8)), true);
  frame.set(data, 12);
  view.setUint32(12 + data.length, maskedCrc32c(data), true);
  return frame;
};

/** Writes scalars and histograms to an event file that TensorBoard can read while the file grows. */
export class EventFile {
  private readonly file: number;
  private readonly clock: () => number;

  /** Creates an event file in `folder`. @param clock Returns milliseconds since 1970. */
  constructor(folder: string, clock: () => number = Date.now) {
    this.clock = clock;
    const began = clock();
    this.file = openSync(join(folder, `events.out.tfevents.${Math.floor(began / 1000)}.skein.${process.pid}`), "a");
    this.write(encodeVersionEvent(began / 1000));
  }

  scalars(step: number, scalars: Readonly<Record<string, number>>): void {
    this.write(encodeScalarEvent(this.clock() / 1000, step, scalars));
  }

  histograms(step: number, histograms: Readonly<Record<string, Histogram>>): void {
    this.write(encodeHistogramEvent(this.clock() / 1000, step, histograms));
  }

  close(): void {
    closeSync(this.file);
  }

  private write(event: Uint8Array): void {
    writeSync(this.file, frameRecord(event));
  }
}
