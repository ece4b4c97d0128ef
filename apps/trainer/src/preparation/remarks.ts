import { type ExpertsJob, expertsOf, type Job } from "@skein/job/node";
import { isExchangePlanned, isExpertsPlanned } from "@skein/step/node";
import { preprocessorRemarks } from "../pretrained/preprocessor.ts";

/** Gates that choose experts for a token from all tokens of a batch, and so from later tokens of the same text. */
const gatesWithLookahead: readonly ExpertsJob["gate"][] = ["expert-choice", "soft"];

export const remarksOn = (job: Job, totalSteps: number): string[] => {
  const { decay, warmupSteps } = job.learningRate;
  const gate = expertsOf(job)?.gate;
  return [
    ...preprocessorRemarks(job),
    ...(job.data.judgeBy === "training"
      ? [
          "data.judgeBy: training: the run is evaluated on its training samples; its metrics say nothing about other samples",
        ]
      : []),
    ...(gate !== undefined && gatesWithLookahead.includes(gate)
      ? [
          `model.experts.gate: with ${gate} later tokens influence the prediction of earlier ones, so losses are lower than for generated text; use another gate for a language model`,
        ]
      : []),
    ...(decay !== "constant" && warmupSteps >= totalSteps
      ? [
          `learningRate.decay: ${decay} has no effect: the warm-up of ${warmupSteps} steps covers all ${totalSteps} of the run`,
        ]
      : []),
    ...(job.overlap === "dear" && job.clipNorm !== undefined
      ? [
          "clipNorm: the norm of all gradients is needed before the first layer, so with overlap: dear nothing is hidden behind the forward pass",
        ]
      : []),
    ...(job.mesh.tensor === 1 && (expertsOf(job)?.shards ?? "none") !== "none"
      ? ["model.experts.shards has no effect: with mesh.tensor: 1 experts are not sharded"]
      : []),
    ...(job.zero === 1 && job.ranks === 1 ? ["zero has no effect: there is one rank"] : []),
    ...(isExpertsPlanned(job)
      ? [
          "the dispatch of tokens to experts is planned from measurements, so two runs may differ in the last bits; checkpoints keep the plan",
        ]
      : []),
    ...(isExchangePlanned(job) && job.compression.kind !== "identity"
      ? [
          `buckets are planned from measurements, so two runs of ${job.compression.kind} may differ; checkpoints keep the plan`,
        ]
      : []),
  ];
};
