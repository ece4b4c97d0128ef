import { ConfigError } from "@skein/cli/node";
import { expect, test } from "vitest";
import { parseJob, parseOverride } from "../file/check-job.ts";

const job = `
name: small
seed: 1
ranks: 1
batch: 8
steps: 1
data: { kind: moby-dick, window: 16, trainSamples: 400, testSamples: 30 }
model: { kind: mlp }
optimizer: { kind: adamw }
learningRate: { peak: 0.01 }
compression: { kind: identity }
evaluation: { batch: 8 }
`;

const gpt = "model={kind: gpt, layers: 2, heads: 4, width: 16}";
const gptOf = (experts: string): string =>
  `model={kind: gpt, layers: 2, heads: 4, width: 16, experts: {count: 4, ${experts}}}`;
const dropless = gptOf("capacity: all, every: 1, gate: sigmoid");

test.each<[readonly string[], RegExp]>([
  [["ranks=3", "mesh.expert=2", dropless, "batch=9"], /3 ranks are not divisible into groups of 2/],
  [
    ["ranks=4", "mesh={data: 4, expert: 2}", dropless],
    /data 4 × expert 2 are 8 ranks, but the job has 4; use ranks: 8/,
  ],
  [
    ["ranks=8", "mesh.expert=8", dropless],
    /4 experts are not divisible by 8 ranks along mesh\.expert; use a multiple of 8/,
  ],
  [
    ["ranks=2", "mesh.expert=2", "model={kind: gpt}"],
    /mesh\.expert divides experts among 2 ranks, but the model has no experts/,
  ],
  [
    ["ranks=2", "mesh.expert=2", dropless, "optimizer={kind: kfac}"],
    /kfac needs whole parameters, but ranks along mesh\.expert shard them; use sgd, .*, muon, soap, shampoo, lars, lamb, or/,
  ],
  [
    ["ranks=4", "mesh={expert: 2, expertLevels: [2, 2]}", gptOf("dispatch: hierarchical")],
    /2 × 2 are 4 ranks, but mesh\.expert is 2/,
  ],
  [[gptOf("chunks: 0")], /model\.experts\.chunks/],
  [[gptOf("chunks: often")], /model\.experts\.chunks is "often", but must be a number or auto; change it/],
  [[gptOf("dispatch: any")], /model\.experts\.dispatch is "any", which is unknown; use one of: dense, .*, auto/],
  [
    ["buckets={kind: moe-idle}", dropless],
    /moe-idle sends gradients while no tokens are sent .* use model\.experts with mesh\.expert above 1/,
  ],
  [["ranks=2", "mesh.expert=2", dropless, "buckets={kind: moe-idle}", "overlap=dear"], /overlap is dear; use overlap/],
  [
    ["ranks=2", "mesh.expert=2", dropless, "buckets={kind: moe-idle}", "priorities=forward"],
    /sends tokens first .* priorities is forward; use priorities: none/,
  ],
  [
    [gptOf("dispatch: ragged, chunks: 2, backwardChunks: 4")],
    /backwardChunks.*4 with chunks: 2 would send rows a second time with dispatch: ragged; leave it out/,
  ],
  [
    [gptOf("dispatch: ragged, chunks: auto, backwardChunks: auto")],
    /backwardChunks.*auto with chunks: auto would send rows a second time with dispatch: ragged; leave it out/,
  ],
  [[gptOf("topK: 5")], /a token cannot go to 5 of 4 experts; use at most 4/],
  [[gptOf("gate: switch")], /the gate switch chooses one expert, not 2; use topK: 1/],
  [[gptOf("topK: 1")], /the gate noisy-top-k divides weights by their sum, which leaves one choice no gradient/],
  [
    ["ranks=3", "mesh.tensor=2", gpt, "batch=9"],
    /3 ranks are not divisible into groups of 2 along tensor; use ranks: 4/,
  ],
  [
    ["ranks=4", "mesh={data: 2, expert: 2, tensor: 2}", dropless],
    /data 2 × expert 2 × tensor 2 are 8 ranks, but the job has 4; use ranks: 8/,
  ],
  [["ranks=8", "mesh.tensor=8", gpt], /4 heads are not divisible by 8 ranks along mesh\.tensor; use a multiple of 8/],
  [
    ["ranks=2", "mesh.tensor=2", gpt, "data={kind: moby-dick, window: 15}"],
    /15 positions are not divisible by 2 ranks along mesh\.tensor; use a multiple of 2/,
  ],
  [
    ["ranks=2", "mesh.tensor=2", "data={kind: mnist}", "model={kind: mlp}"],
    /mesh\.tensor shards matrices over 2 ranks, but a mlp/,
  ],
  [
    ["ranks=2", "mesh.tensor=2", gpt, "optimizer={kind: muon}"],
    /muon needs whole parameters, but ranks along mesh\.tensor/,
  ],
  [
    ["ranks=4", "mesh.tensor=2", gpt, "compression={kind: hierarchical-top-k, ranksPerHost: 2}"],
    /ranks along mesh\.tensor have different parameters; use top-k/,
  ],
  [
    ["ranks=2", "mesh.tensor=2", gptOf("shards: baseline, hidden: 9")],
    /9 hidden features of an expert are not divisible by 2 ranks along mesh\.tensor; use a multiple of 2/,
  ],
  [
    ["ranks=2", "mesh.tensor=2", gptOf("shards: split-after-gate, dispatch: ragged")],
    /split-after-gate sends slots of one size, not ragged; use dispatch: dense/,
  ],
  [
    [
      "ranks=4",
      "mesh={expert: 2, tensor: 2}",
      gptOf("shards: baseline, dispatch: ragged, placement: {everySteps: 5, when: pays}"),
    ],
    /with shards: baseline tokens are sent to other ranks than in the exchange that the gain of moves is estimated from; use when: always/,
  ],
  [
    ["ranks=4", "mesh.tensor=2", gpt, "batch=7"],
    /7 samples are not divisible by 2 groups of 2 ranks; use a multiple of 2/,
  ],
])("rejects %j", (own, message) => {
  expect(() => parseJob(job, "job.yaml", own.map(parseOverride))).toThrow(ConfigError);
  expect(() => parseJob(job, "job.yaml", own.map(parseOverride))).toThrow(message);
});

test("accepts a valid mesh, with the levels of its ranks along expert", () => {
  const overrides = ["ranks=8", "mesh={expert: 4, expertLevels: [2, 2], tensor: 2}", dropless].map(parseOverride);
  expect(parseJob(job, "job.yaml", overrides).mesh).toEqual({ expert: 4, expertLevels: [2, 2], tensor: 2 });
});
