import { alignClocks } from "@skein/report";
import type { RankSpans } from "@skein/tensor-core";
import { expect, test } from "vitest";
import { madeUpRun } from "./made-up-run.ts";

const shifted = (rank: RankSpans, seconds: number, process: string): RankSpans => ({
  ...rank,
  process,
  spans: rank.spans.map((span) => ({
    ...span,
    startSeconds: span.startSeconds + seconds,
    endSeconds: span.endSeconds + seconds,
  })),
});

test("shifts the clock of another host by the ends of collectives over all ranks", () => {
  const [first, second, third] = madeUpRun(3);
  const aligned = alignClocks([first!, shifted(second!, 5, "other:7"), shifted(third!, -0.25, "third:9")]);
  for (const [index, rank] of [second!, third!].entries())
    for (const [i, span] of aligned[index + 1]!.spans.entries())
      expect(span.startSeconds).toBeCloseTo(rank.spans[i]!.startSeconds, 9);
});

test("ranks of one host keep their times: a late end there is real", () => {
  const [first, second] = madeUpRun(2);
  const late = shifted(second!, 0.002, "host:2");
  expect(alignClocks([first!, late])[1]).toBe(late);
});
