import { expertsOf } from "../experts-of.ts";
import type { Job } from "../job.ts";
import type { CrossFieldFault } from "./cross-field-fault.ts";

/** Returns the problems found in a job's gradient-exchange options. */
export const exchangeFaults = ({
  ranks,
  compression,
  buckets,
  overlap,
  priorities,
  precision,
  optimizer,
  mesh,
  model,
}: Job): CrossFieldFault[] => {
  const faults: CrossFieldFault[] = [];
  const fault = (path: readonly string[], rule: string): void => void faults.push({ path, rule });
  if (compression.kind === "hierarchical-top-k" && ranks % compression.ranksPerHost !== 0)
    fault(
      ["compression", "ranksPerHost"],
      `${ranks} ranks are not divisible by ${compression.ranksPerHost} ranks per host; use a divisor of ${ranks}`,
    );
  if (
    optimizer.kind !== "sgd" &&
    (compression.kind === "dgc" || (compression.kind !== "identity" && compression.momentum > 0))
  )
    fault(
      ["optimizer", "kind"],
      `compression: ${compression.kind} applies momentum, so the momentum of ${optimizer.kind} would be applied on top; use optimizer: {kind: sgd}`,
    );
  if (buckets.kind === "tuned" && compression.kind !== "identity")
    fault(
      ["buckets", "kind"],
      `tuned buckets change while training runs, but ${compression.kind} keeps residuals per bucket; use compression: {kind: identity} or another kind of buckets`,
    );
  if (buckets.kind === "tuned" && buckets.minBytes > buckets.maxBytes)
    fault(
      ["buckets", "minBytes"],
      `${buckets.minBytes} bytes are more than maxBytes, ${buckets.maxBytes}; lower minBytes`,
    );
  if (buckets.kind === "mg-wfbp" && (buckets.plan === "simultaneous") !== (priorities === "spread"))
    fault(
      ["buckets", "plan"],
      `plan: ${buckets.plan} is for ${buckets.plan === "simultaneous" ? "two collectives at a time" : "one collective at a time"}, but priorities is ${priorities}; use plan: simultaneous and priorities: spread together, or neither of them`,
    );
  if (buckets.kind === "moe-idle") {
    if (mesh.expert === 1 || expertsOf({ model }) === undefined)
      fault(
        ["buckets", "kind"],
        "moe-idle sends gradients while no tokens are sent to experts on other ranks, but no experts are on other ranks; use model.experts with mesh.expert above 1, or buckets: {kind: mg-wfbp}",
      );
    if (overlap !== "wait-free")
      fault(
        ["overlap"],
        `buckets: moe-idle plans the exchange during the backward pass, but overlap is ${overlap}; use overlap: wait-free, or buckets: {kind: fixed-size}`,
      );
    if (priorities !== "none")
      fault(
        ["priorities"],
        `buckets: moe-idle sends tokens first and gradients one after the other, but priorities is ${priorities}; use priorities: none, or buckets: {kind: fixed-size}`,
      );
  }
  if (compression.kind === "lags" && buckets.kind !== "per-tensor")
    fault(
      ["buckets", "kind"],
      `compression: lags needs one bucket per tensor, not ${buckets.kind} buckets; use buckets: {kind: per-tensor}`,
    );
  if (overlap === "dear" && precision.kind === "mixed-f16")
    fault(
      ["overlap"],
      `with overlap: dear an update is applied in the next step, too late for precision: ${precision.kind} to skip it; use overlap: wait-free`,
    );
  if (overlap === "dear" && compression.kind !== "identity") {
    const { kind, warmupSteps } = compression;
    const changes =
      kind === "acp-sgd" ||
      warmupSteps > 0 ||
      ("densityWarmup" in compression && compression.densityWarmup !== undefined);
    if (changes)
      fault(
        ["overlap"],
        `overlap: dear finishes an exchange in the next step, but ${kind} changes its exchange between steps; use overlap: wait-free${kind === "acp-sgd" ? "" : ", or leave the warm-up out"}`,
      );
  }
  return faults;
};
