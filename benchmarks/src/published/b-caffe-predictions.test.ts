import { expect, test } from "vitest";
import { fitLeastSquares } from "@skein/cost-model/calibration";
import { mpiAllReduce } from "@skein/published-measurements";
import { predictLog, replayLog, trainingModels } from "./b-caffe-predictions.ts";

const milliseconds = (seconds: number): number => 1e3 * seconds;

// Milliseconds of Σ backward, Σ all-reduce, finish and exposed, computed from the logs independently of this code.
test.each([
  ["tmpcomm", 201.5, 166.8, 202.1, 0.5],
  ["tmp2comm", 200.3, 154, 200.7, 0.4],
  ["tmp8comm", 205.3, 310.7, 311.2, 105.9],
] as const)("%s, replayed, ends where it did, to 0.1 ms", (log, backward, allReduce, finish, exposed) => {
  const { backwardSeconds, allReduceSeconds, finishSeconds, exposedSeconds } = replayLog(log);
  expect(Math.abs(milliseconds(backwardSeconds) - backward)).toBeLessThan(0.1);
  expect(Math.abs(milliseconds(allReduceSeconds) - allReduce)).toBeLessThan(0.1);
  expect(Math.abs(milliseconds(finishSeconds) - finish)).toBeLessThan(0.1);
  expect(Math.abs(milliseconds(exposedSeconds) - exposed)).toBeLessThan(0.1);
});

// Message sizes are 16 KiB to 1 MiB. The expected figures were computed from all 253 sizes, a quarter of which is in
// this repository.
test.each([
  [2, 114.3, 1.643e-3],
  [4, 259.4, 2.016e-3],
  [8, 831.5, 3.336e-3],
] as const)("the benchmark of MPI on %i nodes is %f µs + %f µs/B, to 2 %", (nodes, startup, perByte) => {
  const samples = mpiAllReduce[nodes].filter(([bytes]) => bytes >= 2 ** 14);
  const { parameters } = fitLeastSquares(
    ([a, b]) => samples.map(([bytes, time]) => a! + b! * bytes - time),
    [100, 1e-3],
  );
  expect(Math.abs(parameters[0]! / startup - 1)).toBeLessThan(0.02);
  expect(Math.abs(parameters[1]! / perByte - 1)).toBeLessThan(0.02);
});

test("layers within training add up to what was measured on 2 and 8 nodes, and 4 lie between", () => {
  const models = trainingModels();
  const [on2, on4, on8] = [predictLog(models[2]), predictLog(models[4]), predictLog(models[8])];
  expect(milliseconds(on2.allReduceSeconds)).toBeCloseTo((166.846 + 153.993) / 2, 2);
  // The sum of all-reduces on 8 nodes was measured in two runs: 310.7 and 297.6 ms.
  expect(milliseconds(on8.allReduceSeconds)).toBeCloseTo((310.738 + 297.641) / 2, 0);
  expect(on4.allReduceSeconds).toBeGreaterThan(on2.allReduceSeconds);
  expect(on4.allReduceSeconds).toBeLessThan(on8.allReduceSeconds);
});

test("merging ends earlier than layer by layer, exactly no later than greedily", () => {
  const models = trainingModels();
  for (const nodes of [2, 4, 8] as const) {
    const { finishSeconds, greedy, optimal } = predictLog(models[nodes]);
    expect(optimal.finishSeconds).toBeLessThanOrEqual(greedy.finishSeconds);
    expect(greedy.finishSeconds).toBeLessThanOrEqual(finishSeconds);
  }
});

// Milliseconds of Σ all-reduce and finish, from summaries of logs that no fit used: 4 nodes, and 8 nodes with overlap.
test.each([
  ["tmp4comm", 4, 261.5, 262],
  ["tmp4ocomm", 4, 257.6, 258],
  ["tmp8ocomm", 8, 319.4, 319.9],
] as const)("%s, which nothing was fitted to, is predicted within 6 %", (_, nodes, allReduce, finish) => {
  const predicted = predictLog(trainingModels()[nodes]);
  expect(Math.abs(milliseconds(predicted.allReduceSeconds) / allReduce - 1)).toBeLessThan(0.06);
  expect(Math.abs(milliseconds(predicted.finishSeconds) / finish - 1)).toBeLessThan(0.06);
});
