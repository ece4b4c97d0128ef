import { ConfigError } from "@skein/cli/node";
import { checkJob, type Job } from "@skein/job/node";
import fc from "fast-check";
import { expect, test } from "vitest";
import { patienceOf } from "./patience.ts";

const jobWith = (network: object): Job =>
  checkJob(
    {
      name: "patient",
      batch: 4,
      steps: 1,
      data: { kind: "mnist" },
      model: { kind: "mlp" },
      optimizer: { kind: "sgd" },
      learningRate: { peak: 0.1 },
      network,
    },
    { file: "job.yaml" },
  );

test("by default processes may be silent for 15 s, busy for a minute, and take ten to arrive", () => {
  expect(patienceOf(jobWith({}))).toEqual({
    heartbeat: { intervalMilliseconds: 1000, lossMilliseconds: 15_000, stuckMilliseconds: 60_000 },
    joinTimeoutMilliseconds: 600_000,
  });
  const said = { timeoutSeconds: 300, silenceSeconds: 90, heartbeatSeconds: 5, joinSeconds: 3600 };
  expect(patienceOf(jobWith(said))).toEqual({
    heartbeat: { intervalMilliseconds: 5000, lossMilliseconds: 90_000, stuckMilliseconds: 300_000 },
    joinTimeoutMilliseconds: 3_600_000,
  });
});

test("in every accepted job one late heartbeat does not end the run", () => {
  const seconds = fc.double({ min: 0.01, max: 3600, noNaN: true });
  const network = fc.record(
    { timeoutSeconds: seconds, silenceSeconds: seconds, heartbeatSeconds: seconds },
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(network, (said) => {
      let job: Job;
      try {
        job = jobWith(said);
      } catch (error) {
        expect(error).toBeInstanceOf(ConfigError);
        return;
      }
      const { intervalMilliseconds, lossMilliseconds } = patienceOf(job).heartbeat;
      expect(lossMilliseconds).toBeGreaterThanOrEqual(2 * intervalMilliseconds);
      expect(lossMilliseconds).toBeLessThanOrEqual(1000 * job.network.timeoutSeconds);
    }),
  );
});
