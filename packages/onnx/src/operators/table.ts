import type { OperatorName, OperatorRows } from "@skein/tensor-core/backend";
import { elementwise } from "./elementwise.ts";
import { type Emitter, noEquivalent } from "./emitter.ts";
import { movement } from "./movement.ts";
import { products } from "./products.ts";
import { rows } from "./rows.ts";

/**
 * Reasons why some operators have no emitter, by operator name. All other operators without an emitter have no ONNX
 * equivalent.
 */
const table: OperatorRows<OperatorName, Emitter | string> = {
  ...elementwise,
  ...movement,
  ...products,
  ...rows,
  "all-gather": noEquivalent,
  "all-reduce": noEquivalent,
  "all-to-all": noEquivalent,
  "attention-backward": noEquivalent,
  "avg-pool2d-backward": noEquivalent,
  "axis-index": noEquivalent,
  "batch-norm": noEquivalent,
  "batch-norm-backward": noEquivalent,
  broadcast: noEquivalent,
  cholesky: noEquivalent,
  "collective-done": noEquivalent,
  "collective-start": noEquivalent,
  compact: noEquivalent,
  "conv2d-backward-input": noEquivalent,
  "conv2d-backward-weight": noEquivalent,
  "cross-entropy": noEquivalent,
  "cross-entropy-backward": noEquivalent,
  "dynamic-slice": noEquivalent,
  "dynamic-update-slice": noEquivalent,
  eigh: noEquivalent,
  "fold-in": noEquivalent,
  fused: noEquivalent,
  "grouped-matmul": "mixtures of experts are not exported; export a dense model",
  "grouped-matmul-backward-weight": noEquivalent,
  histogram: noEquivalent,
  input: noEquivalent,
  "layer-norm-backward": noEquivalent,
  "log-softmax-backward": noEquivalent,
  "max-pool2d-backward": noEquivalent,
  nonzero: noEquivalent,
  "pack-bits": noEquivalent,
  qr: noEquivalent,
  "ragged-all-gather": noEquivalent,
  "ragged-all-to-all": noEquivalent,
  "random-bits": "no operators of ONNX give the same random numbers; export the function without them",
  reduce: noEquivalent,
  "reduce-scatter": noEquivalent,
  "rms-norm-backward": noEquivalent,
  "scatter-add": noEquivalent,
  "send-receive": noEquivalent,
  "softmax-backward": noEquivalent,
  "triangular-solve": noEquivalent,
  "unpack-bits": noEquivalent,
};

/** Emitters by operator name. */
export const emitters: ReadonlyMap<string, Emitter> = new Map(
  Object.entries(table).filter((row): row is [string, Emitter] => typeof row[1] === "function"),
);

/** Returns the reason why an operator without emitter is not exported. */
export const reasonOf = (op: string): string => {
  const row = (table as { readonly [op: string]: Emitter | string | undefined })[op];
  return typeof row === "string" ? row : noEquivalent;
};
