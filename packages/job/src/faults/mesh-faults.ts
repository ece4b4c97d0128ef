import { expertsOf, hiddenOf } from "../experts-of.ts";
import type { Job } from "../job.ts";
import type { CrossFieldFault } from "./cross-field-fault.ts";

/** Optimizers that update each element of a parameter independently. */
const byElement: readonly Job["optimizer"]["kind"][] = ["sgd", "momentum", "nesterov", "adam", "adamw"];

/** Optimizers that update each matrix of a stack independently, with state keyed by the path of the parameter. */
const byMatrix: readonly Job["optimizer"]["kind"][] = ["muon", "soap", "shampoo", "lars", "lamb"];

/** Whether an optimizer needs whole matrices. False for a user optimizer, which is checked when it is created. */
export const needsWholeMatrices = ({ kind }: Job["optimizer"]): boolean =>
  kind !== "module" && kind !== "program" && !byElement.includes(kind);

/** Records that the field at `path` violates `rule`. */
type Fault = (path: readonly string[], rule: string) => void;

/** Returns the problems found in a job's mesh options. */
export const meshFaults = (job: Job): CrossFieldFault[] => {
  const faults: CrossFieldFault[] = [];
  const fault: Fault = (path, rule) => void faults.push({ path, rule });
  const { mesh, ranks, optimizer, compression } = job;
  const { data, expert, tensor, expertLevels } = mesh;
  const each = expert * tensor;
  const along = [...(expert > 1 ? ["expert"] : []), ...(tensor > 1 ? ["tensor"] : [])];
  if (ranks % each !== 0)
    fault(
      ["mesh", along.at(-1)!],
      `${ranks} ranks are not divisible into groups of ${[expert, tensor].filter((size) => size > 1).join(" × ")} along ${along.join(" and ")}; use ranks: ${each * Math.ceil(ranks / each)}, or another number along ${along.join(" or ")}`,
    );
  else if (data !== undefined && data * each !== ranks)
    fault(
      ["mesh"],
      `data ${data} × expert ${expert}${tensor > 1 ? ` × tensor ${tensor}` : ""} are ${data * each} ranks, but the job has ${ranks}; use ranks: ${data * each}, or leave mesh.data out`,
    );
  const numLevelRanks = expertLevels?.reduce((product, size) => product * size, 1) ?? expert;
  if (numLevelRanks !== expert)
    fault(
      ["mesh", "expertLevels"],
      `${expertLevels!.join(" × ")} are ${numLevelRanks} ranks, but mesh.expert is ${expert}; use sizes whose product is ${expert}, or leave expertLevels out`,
    );
  if (job.zero === 1 && needsWholeMatrices(optimizer))
    fault(
      ["zero"],
      `zero: 1 shards the optimizer state, but ${optimizer.kind} needs whole parameters; use ${byElement.join(", ")}, or zero: 0`,
    );
  if (along.length === 0) return faults;
  // Along "expert", a rank has some matrices completely; along "tensor", a rank has a part of each matrix.
  const allowed = tensor > 1 ? byElement : [...byElement, ...byMatrix];
  if (needsWholeMatrices(optimizer) && !allowed.includes(optimizer.kind)) {
    const blocking = byMatrix.includes(optimizer.kind) ? ["tensor"] : along;
    fault(
      ["optimizer", "kind"],
      `${optimizer.kind} needs whole parameters, but ranks along mesh.${blocking[0]} shard them; use ${allowed.join(", ")}, or mesh: {${blocking.map((axis) => `${axis}: 1`).join(", ")}}`,
    );
  }
  if (compression.kind === "hierarchical-top-k")
    fault(
      ["compression", "kind"],
      `hierarchical-top-k averages over all ranks of a host, but ranks along mesh.${along[0]} have different parameters; use top-k, or mesh: {${along.map((axis) => `${axis}: 1`).join(", ")}}`,
    );
  if (expert > 1) expertFaults(job, fault);
  if (tensor > 1) tensorFaults(job, fault);
  return faults;
};

const expertFaults = (job: Job, fault: Fault): void => {
  const {
    mesh: { expert },
    model,
  } = job;
  if (model.kind === "module" || model.kind === "program") return; // the model declares its own sharding
  const experts = expertsOf(job);
  if (experts === undefined)
    fault(
      ["mesh", "expert"],
      `mesh.expert divides experts among ${expert} ranks, but the model has no experts; give model.experts, or leave mesh.expert out`,
    );
  else if (experts.count % expert !== 0)
    fault(
      ["model", "experts", "count"],
      `${experts.count} experts are not divisible by ${expert} ranks along mesh.expert; use a multiple of ${expert}`,
    );
};

/** Reports the problems found in the options of experts that are sharded by ranks along "tensor". */
const shardFaults = ({ mesh: { tensor }, model }: Job, fault: Fault): void => {
  if (model.kind !== "gpt" || model.experts === undefined || model.experts.shards === "none") return;
  const { shards, dispatch, placement, chunks, backwardChunks = chunks } = model.experts;
  const hidden = hiddenOf(model.experts, model.width);
  if (hidden % tensor !== 0)
    fault(
      ["model", "experts", "hidden"],
      `${hidden} hidden features of an expert are not divisible by ${tensor} ranks along mesh.tensor; use a multiple of ${tensor}, or shards: none`,
    );
  if (shards === "split-after-gate" && dispatch !== "dense")
    fault(
      ["model", "experts", "dispatch"],
      `shards: split-after-gate sends slots of one size, not ${dispatch}; use dispatch: dense, or shards: split-before-gate`,
    );
  const canChangeChunks = shards === "split-before-gate" || (shards === "auto" && backwardChunks === "auto");
  if (backwardChunks !== chunks && !canChangeChunks)
    fault(
      ["model", "experts", "backwardChunks"],
      `${backwardChunks} with chunks: ${chunks} would send rows a second time with shards: ${shards}; leave backwardChunks out, or use shards: split-before-gate`,
    );
  if (placement?.when === "pays")
    fault(
      ["model", "experts", "placement", "when"],
      `with shards: ${shards} tokens are sent to other ranks than in the exchange that the gain of moves is estimated from; use when: always, or shards: none`,
    );
};

const tensorFaults = (job: Job, fault: Fault): void => {
  const {
    mesh: { tensor },
    model,
    data,
  } = job;
  shardFaults(job, fault);
  if (model.kind !== "gpt")
    return fault(
      ["mesh", "tensor"],
      `mesh.tensor shards matrices over ${tensor} ranks, but a ${model.kind} cannot be sharded; use {kind: gpt}, or leave mesh.tensor out`,
    );
  if (model.heads % tensor !== 0)
    fault(
      ["model", "heads"],
      `${model.heads} heads are not divisible by ${tensor} ranks along mesh.tensor; use a multiple of ${tensor}`,
    );
  if ("window" in data && data.window % tensor !== 0)
    fault(
      ["data", "window"],
      `${data.window} positions are not divisible by ${tensor} ranks along mesh.tensor; use a multiple of ${tensor}`,
    );
};
