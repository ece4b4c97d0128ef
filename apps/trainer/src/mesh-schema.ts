import { z } from "zod";
import type { CrossFieldFault } from "./cross-field-fault.ts";
import type { Job, MeshJob } from "./job.ts";
import { count } from "./ranges.ts";

/** `mesh` of a job file. */
export const meshSchema: z.ZodType<MeshJob, { data?: number | undefined; expert?: number | undefined }> = z
  .strictObject({
    data: count.optional().describe("Ranks that hold the same experts. Default: all ranks over those along expert."),
    expert: count.default(1).describe("Ranks that share out the experts of each layer."),
  })
  .describe("What ranks share out beside the batch, which all of them share.");

/** Optimizers whose update of a parameter needs no other rank. */
const byElement: readonly Job["optimizer"]["kind"][] = ["sgd", "momentum", "nesterov", "adam", "adamw"];

/** Rules about the mesh. */
export const meshFaults = ({ mesh, ranks, optimizer, model }: Job): CrossFieldFault[] => {
  const faults: CrossFieldFault[] = [];
  const fault = (path: readonly string[], rule: string): void => void faults.push({ path, rule });
  const { data, expert } = mesh;
  if (ranks % expert !== 0)
    fault(
      ["mesh", "expert"],
      `${ranks} ranks do not divide into groups of ${expert} that share out the experts; use ranks: ${expert * Math.ceil(ranks / expert)}, or another number along expert`,
    );
  else if (data !== undefined && data * expert !== ranks)
    fault(
      ["mesh"],
      `data ${data} × expert ${expert} are ${data * expert} ranks, but the job has ${ranks}; use ranks: ${data * expert}, or leave mesh.data out`,
    );
  const levels = model.kind === "gpt" ? model.experts?.levels : undefined;
  const numLevelRanks = levels?.reduce((product, size) => product * size, 1) ?? expert;
  if (numLevelRanks !== expert)
    fault(
      ["model", "experts", "levels"],
      `${levels!.join(" × ")} are ${numLevelRanks} ranks, but mesh.expert is ${expert}; use sizes whose product is ${expert}, or leave levels out`,
    );
  if (expert === 1) return faults;
  if (!byElement.includes(optimizer.kind))
    fault(
      ["optimizer", "kind"],
      `${optimizer.kind} looks at parameters as wholes, which ranks along mesh.expert share out; use ${byElement.join(", ")}, or mesh: {expert: 1}`,
    );
  if (!("experts" in model) || model.experts === undefined)
    fault(
      ["mesh", "expert"],
      `${expert} ranks are to share out experts, but the model has none; give model.experts, or leave mesh.expert out`,
    );
  else if (model.experts.count % expert !== 0)
    fault(
      ["model", "experts", "count"],
      `${model.experts.count} experts do not divide among ${expert} ranks along mesh.expert; use a multiple of ${expert}`,
    );
  return faults;
};
