import { exportOnnx } from "@skein/onnx";
import type { NdArray, Tensor } from "@skein/tensor-core";
import { ConfigError } from "../errors.ts";
import { nodeFiles, replaceDurably } from "../checkpoint/files.ts";
import { requireReplaceable } from "../run/places.ts";
import type { SavedRun } from "../checkpoint/saved-run.ts";

interface Weights {
  readonly params: unknown;
  readonly state: unknown;
}

/** Names of the result, by what is predicted. */
const resultNames = { classes: "logits", bytes: "logits", tokens: "logits", values: "values" } as const;

/**
 * Write what a run has trained as an ONNX model of its forward pass: an input `inputs` like those of its samples, a
 * result `logits` (or `values`), batches of any size.
 *
 * @returns the names of the files.
 * @throws OnnxError for a model with operators that ONNX does not have; ConfigError where the file cannot be written.
 */
export const exportOnnxModel = async (
  { job, prepared, params, state, step }: SavedRun,
  output: string,
  { dtype = "f32" }: { readonly dtype?: string } = {},
): Promise<string[]> => {
  if (dtype !== "f32") throw new ConfigError([`--dtype ${dtype}: --format onnx writes f32 weights; leave it out`]);
  requireReplaceable(output, "--output");
  const { model, data } = prepared;
  const { dtype: inputType, shape } = data.train.fields["inputs"]!;
  const bytes = exportOnnx<Weights>({
    fn: (weights, { inputs }) => ({
      [resultNames[data.predicts]]: model.apply(weights.params, weights.state, inputs as Tensor, { train: false })[0],
    }),
    weights: { params, state } as { readonly params: NdArray; readonly state: NdArray },
    inputs: { inputs: { dtype: inputType, shape } },
    batch: "dynamic",
    name: job.name,
    metadata: { step: String(step), predicts: data.predicts, model: job.model.kind },
  });
  replaceDurably(nodeFiles, output, bytes);
  return [output];
};
