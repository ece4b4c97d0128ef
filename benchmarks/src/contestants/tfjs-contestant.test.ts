import * as tf from "@tensorflow/tfjs";
import { expect, test, vi } from "vitest";
import type { GptSizes, Problem, ProblemTensor } from "../problems/problem.ts";
import { problems } from "../problems/table.ts";
import { withValues } from "../problems/values.ts";
import { tfjsContestant } from "./tfjs-contestant.ts";

const gpt: GptSizes = { batch: 2, positions: 4, vocabulary: 10, width: 8, layers: 1, heads: 2 };

/** Shrinks the GPT of the benchmarks so that a test takes no noticeable time. */
const shrink = ({ tensors, ...problem }: Problem): Problem => {
  const large = problem.gpt!;
  const sizes = new Map([
    [large.batch, gpt.batch],
    [large.positions, gpt.positions],
    [large.vocabulary, gpt.vocabulary],
    [large.width, gpt.width],
    [4 * large.width, 4 * gpt.width],
  ]);
  const kept = tensors.filter(({ name }) => !/^(weight|gain)[1-9]/.test(name));
  return {
    ...problem,
    gpt,
    tensors: kept.map((one): ProblemTensor => ({ ...one, shape: one.shape.map((size) => sizes.get(size)!) })),
  };
};

test("TensorFlow.js makes its mask once, before it is timed, and keeps nothing of a step", async () => {
  await tf.setBackend("cpu");
  const made = vi.spyOn(tf.engine(), "makeTensor");
  const masks = (): number =>
    made.mock.calls.filter(([, shape]) => String(shape) === String([gpt.positions, gpt.positions])).length;
  const { checks, run } = await tfjsContestant().prepare(withValues(shrink(problems["gpt-step"]!)));
  expect(checks.at(-1)!).toBeLessThan(checks[0]!);
  expect(masks()).toBe(1);
  const before = tf.memory().numTensors;
  await run();
  expect(masks()).toBe(1);
  expect(tf.memory().numTensors).toBe(before);
});
