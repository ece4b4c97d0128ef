import { describe, expect, test } from "vitest";
import { referenceBackend } from "./reference/reference-backend.ts";
import { add } from "./functions/elementwise.ts";
import type { Tensor } from "./graph/tensor.ts";
import { jit } from "./jit.ts";
import { NdArray } from "./nd-array.ts";
import { spanned, SpanRecorder } from "./span-sink.ts";

/** Creates a span sink whose clock advances by one second at each reading. */
const ticking = (): SpanRecorder => {
  let milliseconds = 0;
  return new SpanRecorder(() => (milliseconds += 1000), 0);
};
const times = ({ spans }: SpanRecorder): (readonly [string, number, number])[] =>
  spans.map(({ name, startSeconds, endSeconds }) => [name, startSeconds, endSeconds]);

describe("spanned", () => {
  test("records until the work has returned, thrown, or its promise has settled", async () => {
    const spanSink = ticking();
    const span = (name: string) => ({ name, track: "host" }) as const;
    expect(spanned(spanSink, span("returns"), () => 5)).toBe(5);
    expect(() => spanned(spanSink, span("throws"), () => JSON.parse("{"))).toThrow(SyntaxError);
    const later = Promise.withResolvers<string>();
    const promised = spanned(spanSink, span("promises"), () => later.promise);
    expect(spanSink.now()).toBe(6);
    later.resolve("done");
    expect(await promised).toBe("done");
    await expect(spanned(spanSink, span("rejects"), () => Promise.reject(new Error("no")))).rejects.toThrow("no");
    expect(times(spanSink)).toEqual([
      ["returns", 1, 2],
      ["throws", 3, 4],
      ["promises", 5, 7],
      ["rejects", 8, 9],
    ]);
  });

  test("only runs the work without a recording sink, and does not read the clock", () => {
    const spanSink = ticking();
    spanSink.recording = false;
    expect([
      spanned(spanSink, { name: "a", track: "host" }, () => 1),
      spanned(undefined, { name: "a", track: "host" }, () => 2),
    ]).toEqual([1, 2]);
    expect(spanSink.now()).toBe(1);
    expect(spanSink.spans).toEqual([]);
  });
});

test("records a span per compiled signature, around the phases of its compilation", async () => {
  const spanSink = ticking();
  const twice = (x: Tensor): Tensor => add(x, x);
  const f = jit(twice, referenceBackend(), { spanSink });
  for (const size of [2, 2, 3]) await f(NdArray.zeros("f32", [size]));
  f.release();
  const compiled = spanSink.spans.filter(({ name }) => name === "compile twice");
  expect(compiled.map(({ track, args }) => [track, args])).toEqual([
    ["host", { signature: "f32[2]" }],
    ["host", { signature: "f32[3]" }],
  ]);
  const inside = spanSink.spans.filter(
    ({ startSeconds, endSeconds }) => startSeconds > compiled[0]!.startSeconds && endSeconds < compiled[0]!.endSeconds,
  );
  expect(inside.map(({ name }) => name)).toEqual(["trace", "passes", "compile for reference"]);
});
