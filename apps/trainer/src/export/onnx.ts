import { basename, dirname, join } from "node:path";
import { ConfigError, nodeFiles, requireReplaceable } from "@skein/cli/node";
import type { Leaves } from "@skein/data";
import { expertsOf } from "@skein/job/node";
import { exportOnnxFiles } from "@skein/onnx";
import { batchSpecs, forwardPass, namedResults, namesOf, type Weights } from "@skein/step/node";
import { flattenTree, full, leafPaths, type NdArray, type Tensor, type TensorSpec, trace } from "@skein/tensor-core";
import { eliminateDeadCode, leavesByPath } from "@skein/tensor-core/backend";
import type { SavedRun } from "../output-folder/saved-run.ts";
import { digestLength, digestOf, replaceOnnxFiles, weightsName } from "./onnx-files.ts";

export interface OnnxExportOptions {
  /** Data type of the exported weights; bf16 is rejected. Default: f32. */
  readonly dtype?: "f32" | "f16" | "bf16";
  /**
   * Maximum size in bytes of weights that are stored inside the model file. Larger weights are written to a separate
   * file next to the model. Default: about 2 GiB, the maximum size of an ONNX file.
   */
  readonly above?: number;
}

type Applied = ReturnType<typeof forwardPass>;

/** Returns the paths of the sample fields that a forward pass uses. Labels are usually unused. */
const usedLeaves = (applied: Applied, weights: Weights, fields: Leaves<TensorSpec>): string[] => {
  const one = Object.fromEntries(leavesByPath<TensorSpec>(batchSpecs({ fields }, 1)));
  const traced = trace((own: Weights, leaves: Leaves<Tensor>) => flattenTree<Tensor>(applied(own, leaves)).leaves, [
    weights,
    one,
  ] as never);
  const { nodes, inputs, outputs } = eliminateDeadCode(traced.graph);
  const used = new Set([...nodes.flatMap((node) => node.inputs), ...outputs].map(({ node }) => node));
  const paths = leafPaths(one);
  return paths.filter((_, i) => used.has(inputs[inputs.length - paths.length + i]!));
};

/** Returns the model's results by name. A result with the same name as a model input gets the prefix `outputs.`. */
const withDistinctNames = (results: Leaves<Tensor>, inputs: readonly string[]): Leaves<Tensor> =>
  Object.fromEntries(
    Object.entries(results).map(([path, result]) => [inputs.includes(path) ? `outputs.${path}` : path, result]),
  );

/**
 * Writes the trained model of a run as an ONNX model of its forward pass. The ONNX model accepts batches of any size.
 * It has one input per sample field that the model uses, named by the path of the field, such as `inputs`. The result
 * is named `logits`, `values` or `outputs`; an output tree has one result per leaf. Class names are stored in the
 * metadata `classes`, as a JSON list. Weights above 2 GiB are stored in a separate file, see `replaceOnnxFiles`.
 *
 * @returns the names of the written files.
 * @throws OnnxError if the model has operators that ONNX does not have; ConfigError if the model is an MoE model, or if
 * the file cannot be written.
 */
export const exportOnnxModel = async (
  { job, prepared, params, state, step }: SavedRun,
  output: string,
  { dtype = "f32", above }: OnnxExportOptions = {},
): Promise<string[]> => {
  if (dtype === "bf16")
    throw new ConfigError([`--dtype ${dtype}: ONNX runtimes do not support bf16; use f32 or f16 with --format onnx`]);
  if (expertsOf(job) !== undefined)
    throw new ConfigError([
      "--format onnx: the model is a mixture of experts (model.experts), which cannot be exported; export a run of the same model without model.experts",
    ]);
  const name = basename(output);
  for (const path of [output, join(dirname(output), weightsName(name, "0".repeat(digestLength)))])
    requireReplaceable(path, "--output");
  const { model, data } = prepared;
  const applied = forwardPass(model);
  const { fields } = data.train;
  const names = namesOf(data);
  const used = usedLeaves(applied, { params, state }, fields);
  if (used.length === 0)
    throw new ConfigError([
      `--format onnx: the model's outputs do not depend on its inputs, ${Object.keys(fields).join(", ")}; give it an apply() that uses them`,
    ]);
  const source = {
    fn: (own: Weights, inputs: Readonly<Record<string, Tensor>>) => {
      const size = inputs[used[0]!]!.shape[0]!;
      // Unused leaves are passed as well, because a model may destructure them.
      const leaves = Object.entries(fields).map(
        ([path, { dtype: leafType, shape }]) => [path, inputs[path] ?? full([size, ...shape], 0, leafType)] as const,
      );
      return withDistinctNames(namedResults(applied(own, Object.fromEntries(leaves)), data.predicts), used);
    },
    weights: { params, state } as { readonly params: NdArray; readonly state: NdArray },
    inputs: Object.fromEntries(used.map((path) => [path, { dtype: fields[path]!.dtype, shape: fields[path]!.shape }])),
    batch: "dynamic" as const,
    name: job.name,
    metadata: {
      step: String(step),
      predicts: data.predicts,
      model: job.model.kind,
      ...(names !== undefined && { classes: JSON.stringify(names) }),
    },
    weightType: dtype,
  };
  const files = exportOnnxFiles<Weights>(source, {
    weightsFile: (pieces) => weightsName(name, digestOf(pieces)),
    ...(above !== undefined && { above }),
  });
  return replaceOnnxFiles(nodeFiles, output, files);
};
