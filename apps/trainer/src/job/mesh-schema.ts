import { z } from "zod";
import type { CrossFieldFault } from "./cross-field-fault.ts";
import { expertsOf, hiddenOf } from "./experts-of.ts";
import type { Job, MeshJob } from "./job.ts";
import { count } from "./ranges.ts";

/** `mesh` of a job file. */
export const meshSchema: z.ZodType<
  MeshJob,
  {
    data?: number | undefined;
    expert?: number | undefined;
    expertLevels?: number[] | undefined;
    tensor?: number | undefined;
  }
> = z
  .strictObject({
    data: count
      .optional()
      .describe("Ranks that hold the same of everything. Default: all ranks over those along the other axes."),
    expert: count.default(1).describe("Ranks that share out the experts of each layer."),
    expertLevels: z
      .array(count)
      .min(1)
      .max(4)
      .optional()
      .describe(
        "Hosts, ranks of each, …: how the ranks along expert lie, from the outermost; the product is expert. What dispatch: hierarchical and duplicate-free go by. Default: one level.",
      ),
    tensor: count
      .default(1)
      .describe(
        "Ranks that have the same samples, and share out the matrices of each block and the positions between.",
      ),
  })
  .describe("What ranks share out beside the batch. Data × expert × tensor are all ranks.");

/** Optimizers whose update of a parameter needs no other rank. */
const byElement: readonly Job["optimizer"]["kind"][] = ["sgd", "momentum", "nesterov", "adam", "adamw"];

/** Optimizers that update each matrix of a stack by itself, with state by path of the parameter. */
const byMatrix: readonly Job["optimizer"]["kind"][] = ["muon", "soap", "shampoo", "lars", "lamb"];

/** Whether an optimizer cannot work on parts of a matrix; a user's optimizer is checked when it is made. */
export const looksAtWholes = ({ kind }: Job["optimizer"]): boolean =>
  kind !== "module" && kind !== "program" && !byElement.includes(kind);

/** What is said about a field. */
type Fault = (path: readonly string[], rule: string) => void;

/** Rules about the mesh. */
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
      `${ranks} ranks do not divide into groups of ${[expert, tensor].filter((size) => size > 1).join(" × ")} along ${along.join(" and ")}; use ranks: ${each * Math.ceil(ranks / each)}, or another number along ${along.join(" or ")}`,
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
  if (job.zero === 1 && looksAtWholes(optimizer))
    fault(
      ["zero"],
      `ranks are to share the optimizer's state out, but ${optimizer.kind} looks at parameters as wholes; use ${byElement.join(", ")}, or zero: 0`,
    );
  if (along.length === 0) return faults;
  // Along expert a rank has some matrices whole; along tensor it has a part of each.
  const allowed = tensor > 1 ? byElement : [...byElement, ...byMatrix];
  if (looksAtWholes(optimizer) && !allowed.includes(optimizer.kind)) {
    const blocking = byMatrix.includes(optimizer.kind) ? ["tensor"] : along;
    fault(
      ["optimizer", "kind"],
      `${optimizer.kind} looks at parameters as wholes, which ranks along mesh.${blocking[0]} share out; use ${allowed.join(", ")}, or mesh: {${blocking.map((axis) => `${axis}: 1`).join(", ")}}`,
    );
  }
  if (compression.kind === "hierarchical-top-k")
    fault(
      ["compression", "kind"],
      `hierarchical-top-k takes the mean over all ranks of its hosts, but along mesh.${along[0]} they have different parameters; use top-k, or mesh: {${along.map((axis) => `${axis}: 1`).join(", ")}}`,
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
  if (model.kind === "module" || model.kind === "program") return; // it says itself what ranks share out
  const experts = expertsOf(job);
  if (experts === undefined)
    fault(
      ["mesh", "expert"],
      `${expert} ranks are to share out experts, but the model has none; give model.experts, or leave mesh.expert out`,
    );
  else if (experts.count % expert !== 0)
    fault(
      ["model", "experts", "count"],
      `${experts.count} experts do not divide among ${expert} ranks along mesh.expert; use a multiple of ${expert}`,
    );
};

/** Rules about experts that ranks along "tensor" share out. */
const shardFaults = ({ mesh: { tensor }, model }: Job, fault: Fault): void => {
  if (model.kind !== "gpt" || model.experts === undefined || model.experts.shards === "none") return;
  const { shards, dispatch, placement, chunks, backwardChunks = chunks } = model.experts;
  const hidden = hiddenOf(model.experts, model.width);
  if (hidden % tensor !== 0)
    fault(
      ["model", "experts", "hidden"],
      `${hidden} features inside of an expert do not divide among ${tensor} ranks along mesh.tensor; use a multiple of ${tensor}, or shards: none`,
    );
  if (shards === "split-after-gate" && dispatch !== "dense")
    fault(
      ["model", "experts", "dispatch"],
      `shards: split-after-gate sends slots of one size, not ${dispatch}; use dispatch: dense, or shards: split-before-gate`,
    );
  const mayCutAnew = shards === "split-before-gate" || (shards === "auto" && backwardChunks === "auto");
  if (backwardChunks !== chunks && !mayCutAnew)
    fault(
      ["model", "experts", "backwardChunks"],
      `${backwardChunks} beside chunks: ${chunks} would let rows travel again with shards: ${shards}; leave it out, or use shards: split-before-gate`,
    );
  if (placement?.when === "pays")
    fault(
      ["model", "experts", "placement", "when"],
      `with shards: ${shards} tokens travel to other ranks than the exchange that moves are weighed by; use when: always, or shards: none`,
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
      `${tensor} ranks are to share out matrices, which a ${model.kind} does not know how to; use {kind: gpt}, or leave mesh.tensor out`,
    );
  if (model.heads % tensor !== 0)
    fault(
      ["model", "heads"],
      `${model.heads} heads do not divide among ${tensor} ranks along mesh.tensor; use a multiple of ${tensor}`,
    );
  if ("window" in data && data.window % tensor !== 0)
    fault(
      ["data", "window"],
      `${data.window} positions do not divide among ${tensor} ranks along mesh.tensor; use a multiple of ${tensor}`,
    );
};
