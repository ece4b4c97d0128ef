import type { DataJob, ExpertsJob, Job, ModelJob } from "../job.ts";
import type { CrossFieldFault } from "./cross-field-fault.ts";

const ofImages: readonly ModelJob["kind"][] = ["mlp", "cnn", "resnet18"];
const ofText: readonly ModelJob["kind"][] = ["gpt"];

/**
 * Built-in models that can train on each kind of data. Absent: any model is allowed, because user data defines the
 * task.
 */
const learners: Readonly<Partial<Record<DataJob["kind"], readonly ModelJob["kind"][]>>> = {
  mnist: ofImages,
  "fashion-mnist": ofImages,
  idx: ofImages,
  "image-folder": ofImages,
  "image-manifest": ofImages,
  "image-parquet": ofImages,
  webdataset: ofImages,
  numpy: ofImages,
  "moby-dick": ofText,
  text: ofText,
  tokens: ofText,
};

/**
 * Returns the problems found in a job's model options: a model that does not fit the data, and sizes that do not fit
 * each other.
 */
export const modelFaults = ({ data, model, compression, zero }: Job): CrossFieldFault[] => {
  const faults: CrossFieldFault[] = [];
  const fault = (path: readonly string[], rule: string): void => void faults.push({ path, rule });
  const expected = learners[data.kind];
  const hasOwnRules: readonly ModelJob["kind"][] = ["module", "program", "pretrained"];
  if (expected !== undefined && !expected.includes(model.kind) && !hasOwnRules.includes(model.kind))
    fault(
      ["model", "kind"],
      `a ${model.kind} cannot train on ${data.kind}; use ${expected.join(" or ")}, or a module of your own`,
    );
  if (model.kind === "gpt" && model.width % model.heads !== 0) {
    fault(
      ["model", "width"],
      `${model.width} features are not divisible by ${model.heads} heads; use a multiple of ${model.heads}`,
    );
  }
  if (model.kind === "gpt" && model.experts !== undefined)
    faults.push(
      ...expertsFaults(model.experts, model.layers),
      ...placementFaults(model.experts, { compression, zero }),
    );
  return faults;
};

/** Returns the problems found in a job's expert options. */
const expertsFaults = (
  { count: numExperts, topK, gate, every, importanceLoadLoss, recordRouting, ...way }: ExpertsJob,
  layers: number,
): CrossFieldFault[] => {
  const { dispatch, chunks, backwardChunks } = way;
  const faults: CrossFieldFault[] = [];
  const fault = (name: string, rule: string): void => void faults.push({ path: ["model", "experts", name], rule });
  if (topK > numExperts)
    fault("topK", `a token cannot go to ${topK} of ${numExperts} experts; use at most ${numExperts}`);
  if (gate === "noisy-top-k" && topK === 1)
    fault(
      "topK",
      `the gate noisy-top-k divides weights by their sum, which leaves one choice no gradient; use topK: 2, or gate: switch`,
    );
  if (gate === "switch" && topK !== 1)
    fault("topK", `the gate switch chooses one expert, not ${topK}; use topK: 1, or the gate noisy-top-k`);
  if (every > layers)
    fault("every", `one in ${every} layers has experts, but the model has ${layers} layers; use at most ${layers}`);
  const differsFromForward =
    backwardChunks === "auto" ? dispatch !== "auto" : backwardChunks !== undefined && backwardChunks !== chunks;
  if (differsFromForward && dispatch !== "dense")
    fault(
      "backwardChunks",
      `${backwardChunks} with chunks: ${chunks} would send rows a second time with dispatch: ${dispatch}; leave it out, or use dispatch: dense`,
    );
  if (recordRouting !== undefined && gate === "soft")
    fault("recordRouting", "with the gate soft no token chooses an expert; leave it out");
  if (importanceLoadLoss > 0 && gate !== "noisy-top-k")
    fault(
      "importanceLoadLoss",
      `importanceLoadLoss needs the noise of the gate noisy-top-k, but the gate is ${gate}; leave importanceLoadLoss out`,
    );
  return faults;
};

/** Returns the problems found in a job's expert-placement options. */
const placementFaults = (
  { placement, gate, dispatch }: ExpertsJob,
  { compression, zero }: Pick<Job, "compression" | "zero">,
): CrossFieldFault[] => {
  const faults: CrossFieldFault[] = [];
  const fault = (name: string, rule: string): void =>
    void faults.push({ path: ["model", "experts", "placement", name], rule });
  if (placement === undefined) return faults;
  const { planner, when } = placement;
  if (gate === "soft")
    fault(
      "planner",
      "with the gate soft all tokens go to all experts, so no placement is better than another; leave placement out",
    );
  else if (gate === "expert-choice" && planner === "heaviest-first")
    fault("planner", "with the gate expert-choice all experts have the same load; use planner: swap");
  if (dispatch === "dense" && when === "pays")
    fault(
      "when",
      "with dispatch: dense all slots are sent wherever experts are placed, so no move pays; use dispatch: ragged",
    );
  if (compression.kind !== "identity")
    faults.push({
      path: ["compression", "kind"],
      rule: `${compression.kind} keeps the unsent gradient of an expert on its rank, where it would stay when the expert moves; use compression: {kind: identity}, or leave model.experts.placement out`,
    });
  if (zero === 1)
    faults.push({
      path: ["zero"],
      rule: "ranks shard the optimizer state in slices that cut through experts, so the state cannot move with the experts; use zero: 0, or leave model.experts.placement out",
    });
  return faults;
};
