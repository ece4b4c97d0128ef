import { Writable } from "node:stream";
import { formatBytes, formatSeconds, formatSummary, makeProgress } from "@skein/run-files/node";
import { expect, test } from "vitest";
import { nextSteps } from "../src/command-line/next-steps.ts";

const standing = { step: 5, steps: 20, epoch: 1, loss: 1.25, samplesPerSecond: 2000.4, secondsLeft: 61 };

const fakeStream = (isTTY: boolean): { stream: NodeJS.WriteStream; written: string[] } => {
  const written: string[] = [];
  const stream = new Writable({
    decodeStrings: false,
    write: (text: string, _, done) => {
      written.push(text);
      done();
    },
  });
  return { stream: Object.assign(stream, { isTTY, columns: 120, rows: 30 }) as unknown as NodeJS.WriteStream, written };
};

test("in a pipe: plain lines, at most one in five seconds, and always the last", () => {
  const { stream, written } = fakeStream(false);
  let now = 0;
  const progress = makeProgress({ stream, quiet: false, clock: () => now });
  progress.update(standing);
  now = 4000;
  progress.update({ ...standing, step: 6 });
  now = 5000;
  progress.update({ ...standing, step: 7 });
  progress.update({ ...standing, step: 20 });
  progress.note("saved");
  expect(written).toEqual([
    "step  5/20  epoch 1  loss 1.2500  2000 samples/s  1:01 left\n",
    "step  7/20  epoch 1  loss 1.2500  2000 samples/s  1:01 left\n",
    "step 20/20  epoch 1  loss 1.2500  2000 samples/s  1:01 left\n",
    "saved\n",
  ]);
});

test("on a terminal: a bar in one line; when quiet: nothing", () => {
  const { stream, written } = fakeStream(true);
  const progress = makeProgress({ stream, quiet: false, clock: () => 0 });
  progress.update(standing);
  progress.update({ ...standing, step: 6 });
  const text = written.join("");
  expect(text).toContain("████████░░░░░░░░░░░░░░░░░░░░░░");
  expect(text).toContain("step  5/20");
  expect(text).not.toContain("step  6/20");
  const sizeless = fakeStream(true);
  makeProgress({ stream: Object.assign(sizeless.stream, { columns: 0 }), quiet: false }).update(standing);
  expect(sizeless.written).toEqual(["step  5/20  epoch 1  loss 1.2500  2000 samples/s  1:01 left\n"]);
  const quiet = fakeStream(true);
  makeProgress({ stream: quiet.stream, quiet: true }).update(standing);
  expect(quiet.written).toEqual([]);
});

test("a loss per byte is also shown in bits", () => {
  const { stream, written } = fakeStream(false);
  makeProgress({ stream, quiet: false }).update({ ...standing, bitsPerByte: 1.8034 });
  expect(written).toEqual(["step  5/20  epoch 1  loss 1.2500  1.803 bits per byte  2000 samples/s  1:01 left\n"]);
});

test("numbers are readable", () => {
  expect([0, 1, 1023, 1024, 1536, 5 * 2 ** 20, 3.26e9].map(formatBytes)).toEqual([
    "0 B",
    "1 B",
    "1023 B",
    "1.00 KiB",
    "1.50 KiB",
    "5.00 MiB",
    "3.04 GiB",
  ]);
  expect([0, 59.6, 61, 3661, Infinity].map(formatSeconds)).toEqual(["0:00", "1:00", "1:01", "1:01:01", "-"]);
  const summary = {
    evaluatedOn: "test" as const,
    testAccuracy: 0.98765,
    testLoss: 0.04,
    backend: "cpu" as const,
    samplesPerSecond: 1999.6,
    bytesSentPerRank: 1000,
    denseBytesPerRank: 50_000,
    peakMemoryBytes: 2 ** 28,
    seconds: 61.23,
    checkpoint: "runs/x",
  };
  const lines = formatSummary(summary);
  expect(lines[0]).toBe("test accuracy  98.77 %");
  expect(lines[4]).toContain("(50.0 × less)");
  const validated = formatSummary({ ...summary, evaluatedOn: "validation" });
  expect(validated.slice(0, 2)).toEqual(["validation accuracy  98.77 %", "validation loss      0.0400 nats"]);
  expect(formatSummary({ ...summary, denseBytesPerRank: 400 })[4]).toContain("(2.5 × as much)");
  expect(nextSteps("my runs/1", 20, undefined)).toEqual([
    "Next steps:",
    "  train longer    skein-train resume 'my runs/1' --steps 40",
    "  see the run     skein-train report 'my runs/1'",
    "  watch runs      skein-train watch 'my runs'",
    "  see the curves  tensorboard --logdir 'my runs/1'   (every step in numbers: my runs/1/metrics.jsonl)",
    expect.stringContaining("add --trace to a run"),
  ]);
});
