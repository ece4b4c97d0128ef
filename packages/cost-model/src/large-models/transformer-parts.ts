import { attention } from "./attention.ts";
import { dense } from "./dense.ts";
import { norm, residual, sweep } from "./elementwise.ts";
import type { TransformerShape } from "./model-shape.ts";
import { type Module, operator, type Operator, type Part, type PassSetting, work } from "./operator.ts";

/** Bytes per log-probability, and per sum over the vocabulary. Both are f32 in every precision. */
const logProbabilityBytes = 4;

const embeddingPart = (shape: TransformerShape, setting: PassSetting): Part => {
  const { vocabulary, contextLength, width, positions } = shape;
  const { batch, length, valueBytes, weightBytes, tensorParallel, training, adapters } = setting;
  const values = batch * length * width;
  const rows = Math.ceil(vocabulary / tensorParallel);
  const trained = adapters === undefined;
  const lookUp = operator("token embedding", "embedding", {
    [trained ? "trainable" : "frozen"]: rows * width,
    weightBytes: rows * width * weightBytes,
    forward: work(0, values * weightBytes, values * valueBytes),
    // The gradient is dense: it is zeroed, then the gradients of the looked-up rows are added.
    backward:
      training && trained
        ? [work(values, values * (valueBytes + weightBytes), (rows * width + values) * weightBytes)]
        : [],
    outputBytes: values * valueBytes,
  });
  const addPositions = sweep(setting, "position embedding", "add", {
    read: values,
    written: values,
    flops: values,
    ...(trained && { backward: { read: values, written: contextLength * width, flops: values } }),
    parameters: contextLength * width,
  });
  const operators = positions === "learned" ? [lookUp, addPositions] : [lookUp];
  return {
    name: "embedding",
    repeats: 1,
    recomputable: false,
    inputBytes: 0,
    modules: [{ name: "embedding", operators }],
  };
};

const activation = (setting: PassSetting, shape: TransformerShape, values: number): Operator =>
  shape.gated
    ? // x · sigmoid(x) · gate: saves both inputs and recomputes the sigmoid.
      sweep(setting, "SwiGLU", "swiglu", {
        read: 2 * values,
        written: values,
        flops: 6 * values,
        backward: { read: 3 * values, written: 2 * values, flops: 12 * values },
        saved: 2 * values,
      })
    : sweep(setting, "GELU", "gelu", {
        read: values,
        written: values,
        flops: 10 * values,
        backward: { read: 2 * values, written: values, flops: 20 * values },
        saved: values,
      });

const layerPart = (shape: TransformerShape, setting: PassSetting): Part => {
  const { width, layers, gated, norm: kind, positions, biases: bias } = shape;
  const { batch, length, valueBytes, tensorParallel } = setting;
  const rows = batch * length;
  const headWidth = width / shape.heads;
  const heads = shape.heads / tensorParallel;
  // If there are more ranks than key/value heads, several ranks have copies of the same head.
  const keyValueHeads = Math.max(1, shape.keyValueHeads / tensorParallel);
  const hidden = shape.hidden / tensorParallel;
  const inner = heads * headWidth;
  const keyWidth = keyValueHeads * headWidth;
  const rotated = rows * (inner + keyWidth);
  const rotation = { read: rotated, written: rotated, flops: 3 * rotated };
  const modules: Module[] = [
    { name: "attention norm", operators: [norm(setting, "attention norm", kind, rows, width)] },
    {
      name: "query, key, value",
      operators: dense(setting, {
        rows,
        inner: width,
        outputs: [
          { name: "query", columns: inner, bias, projection: "query" },
          { name: "key", columns: keyWidth, bias, projection: "key" },
          { name: "value", columns: keyWidth, bias, projection: "value" },
        ],
      }),
    },
    ...(positions === "rotary"
      ? [
          {
            name: "rotary positions",
            operators: [sweep(setting, "rotary positions", "rotary", { ...rotation, backward: rotation })],
          },
        ]
      : []),
    { name: "attention", operators: attention(setting, { heads, keyValueHeads, headWidth }) },
    {
      name: "output projection",
      operators: dense(setting, {
        rows,
        inner,
        outputs: [{ name: "output", columns: width, bias, projection: "output" }],
      }),
    },
    { name: "attention residual", operators: [residual(setting, "attention residual", rows * width)] },
    { name: "feed-forward norm", operators: [norm(setting, "feed-forward norm", kind, rows, width)] },
    {
      name: gated ? "gate and up" : "up",
      operators: dense(setting, {
        rows,
        inner: width,
        outputs: [
          ...(gated ? [{ name: "gate", columns: hidden, bias, projection: "gate" } as const] : []),
          { name: "up", columns: hidden, bias, projection: "up" },
        ],
      }),
    },
    { name: "activation", operators: [activation(setting, shape, rows * hidden)] },
    {
      name: "down",
      operators: dense(setting, {
        rows,
        inner: hidden,
        outputs: [{ name: "down", columns: width, bias, projection: "down" }],
      }),
    },
    { name: "feed-forward residual", operators: [residual(setting, "feed-forward residual", rows * width)] },
  ];
  return { name: "layer", repeats: layers, recomputable: true, inputBytes: rows * width * valueBytes, modules };
};

const headPart = (shape: TransformerShape, setting: PassSetting): Part => {
  const { vocabulary, width, norm: kind, tiedHead: tied } = shape;
  const { batch, length, tensorParallel, training, valueBytes } = setting;
  const rows = training ? batch * length : batch;
  const columns = Math.ceil(vocabulary / tensorParallel);
  const logits = rows * columns;
  const loss = operator("cross-entropy", "cross-entropy", {
    forward: work(5 * logits, logits * valueBytes, logits * logProbabilityBytes),
    backward: [work(2 * logits, logits * logProbabilityBytes, logits * valueBytes)],
    savedBytes: logits * logProbabilityBytes,
    outputBytes: logits * logProbabilityBytes,
  });
  const modules: Module[] = [
    { name: "final norm", operators: [norm(setting, "final norm", kind, rows, width)] },
    { name: "head", operators: dense(setting, { rows, inner: width, outputs: [{ name: "head", columns, tied }] }) },
    ...(training ? [{ name: "loss", operators: [loss] }] : []),
  ];
  return { name: "head", repeats: 1, recomputable: false, inputBytes: 0, modules };
};

/**
 * Returns the parts of a decoder-only transformer on one rank, in the order of the forward pass: embedding, layers,
 * head. The ranks of a tensor-parallel group share heads, hidden width and vocabulary. Every rank computes norms and
 * residual connections.
 *
 * Source: Shoeybi et al. 2019, arXiv 1909.08053 (the split of a layer).
 */
export const transformerParts = (shape: TransformerShape, setting: PassSetting): readonly Part[] => [
  embeddingPart(shape, setting),
  layerPart(shape, setting),
  headPart(shape, setting),
];
