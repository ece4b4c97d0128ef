import { expect, test } from "vitest";
import { BucketTuner } from "./bucket-tuner.ts";

const job = { kind: "tuned", minBytes: 2 ** 10, maxBytes: 2 ** 20, trials: 6, stepsEach: 3 } as const;

test("steps before the first trial and the first step of each trial are ignored, and the fastest size is kept", async () => {
  const agree = async (values: readonly number[]): Promise<number[]> => [...values];
  const tuner = new BucketTuner(job, 2 ** 12, agree);
  let bytes: number = 2 ** 12;
  const tried: number[] = [];
  const remarks: string[] = [];
  for (let step = 0; step < (job.trials + 1) * job.stepsEach; step++) {
    expect(remarks).toEqual([]);
    const isFirst = step % job.stepsEach === 0;
    // Steps are longer the further a bucket size is from 2^12; ignored steps are much longer.
    const seconds = step < job.stepsEach || isFirst ? 1000 : 1 + Math.abs(Math.log2(bytes) - 12);
    if (isFirst && step >= job.stepsEach) tried.push(bytes);
    const tuned = await tuner.stepped(seconds);
    bytes = tuned?.bucketBytes ?? bytes;
    if (tuned?.remark !== undefined) remarks.push(tuned.remark);
  }
  expect(tried).toHaveLength(job.trials);
  expect(tried[0]).toBe(2 ** 12);
  expect(bytes).toBe(2 ** 12);
  expect(remarks).toEqual([expect.stringContaining("continuing with 4 KiB, 1.00e+3 ms per step")]);
  expect(await tuner.stepped(1)).toBeUndefined();
});
