import type { Phase } from "@skein/tensor-core";

/** One node of a made-up training step. */
export interface SampleNode {
  readonly operator: string;
  /** Model scope of the node, without `/backward`. */
  readonly scope: string;
  readonly phase: Phase;
  readonly flops: number;
  readonly bytes: number;
  /** Bytes of the node's result. */
  readonly resultBytes: number;
  /** Number of the bucket that is complete after this node. Absent: no bucket is complete. */
  readonly bucket?: number;
}

/** Sizes of the model: number of tokens per batch, width, vocabulary. */
const [tokens, width, vocabulary] = [8 * 64, 64, 256];
const f32 = 4;

type Work = Pick<SampleNode, "operator" | "flops" | "bytes" | "resultBytes">;

const elementwise = (operator: string, elements: number, flopsPerElement: number): Work => ({
  operator,
  flops: flopsPerElement * elements,
  bytes: 2 * f32 * elements,
  resultBytes: f32 * elements,
});

const matmul = (rows: number, inner: number, columns: number): Work => ({
  operator: "matmul",
  flops: 2 * rows * inner * columns,
  bytes: f32 * (rows * inner + inner * columns + rows * columns),
  resultBytes: f32 * rows * columns,
});

const blockWork = (block: number): readonly (readonly [scope: string, work: Work])[] => [
  [`block-${block}/attention`, elementwise("layer-norm", tokens * width, 8)],
  [`block-${block}/attention`, matmul(tokens, width, 3 * width)],
  [
    `block-${block}/attention`,
    {
      operator: "attention",
      flops: 4 * tokens * 64 * width,
      bytes: 16 * tokens * width,
      resultBytes: 4 * tokens * width,
    },
  ],
  [`block-${block}/attention`, matmul(tokens, width, width)],
  [`block-${block}/attention`, elementwise("add", tokens * width, 1)],
  [`block-${block}/feed-forward`, elementwise("layer-norm", tokens * width, 8)],
  [`block-${block}/feed-forward`, matmul(tokens, width, 4 * width)],
  [`block-${block}/feed-forward`, elementwise("gelu", tokens * 4 * width, 12)],
  [`block-${block}/feed-forward`, matmul(tokens, 4 * width, width)],
  [`block-${block}/feed-forward`, elementwise("add", tokens * width, 1)],
];

/**
 * Returns the nodes of a step of a small GPT in execution order: forward, backward with the packing of buckets, update.
 */
export const sampleStep = (blocks: number, buckets: number): SampleNode[] => {
  const forward: SampleNode[] = [
    [
      "embedding",
      { operator: "gather", flops: 0, bytes: 8 * tokens * width, resultBytes: f32 * tokens * width },
    ] as const,
    ...Array.from({ length: blocks }, (_, block) => blockWork(block)).flat(),
    ["head", elementwise("layer-norm", tokens * width, 8)] as const,
    ["head", matmul(tokens, width, vocabulary)] as const,
    ["head", { ...elementwise("softmax-cross-entropy", tokens * vocabulary, 10), resultBytes: f32 }] as const,
  ].map(([scope, work]) => ({ ...work, scope, phase: "forward" }));
  const backward = forward.toReversed().flatMap((node): SampleNode[] => {
    const once: SampleNode = {
      ...node,
      phase: "backward",
      resultBytes: Math.max(node.resultBytes, f32 * tokens * width),
    };
    return node.operator === "matmul" ? [once, once] : [{ ...once, flops: 2 * node.flops, bytes: 1.5 * node.bytes }];
  });
  const withBuckets = backward.flatMap((node, index): SampleNode[] => {
    const bucket = Array.from({ length: buckets }, (_, i) => i).find(
      (i) => Math.ceil(((i + 1) * backward.length) / buckets) - 1 === index,
    );
    if (bucket === undefined) return [node];
    const bytes = bucketBytes(blocks, buckets);
    return [
      node,
      {
        operator: "concat",
        scope: `exchange/bucket-${bucket}`,
        phase: "communication",
        flops: 0,
        bytes: 2 * bytes,
        resultBytes: bytes,
        bucket,
      },
    ];
  });
  const scopes = [...new Set(forward.map(({ scope }) => scope))];
  const parameters = Math.round(parameterCount(blocks) / scopes.length);
  const update = scopes.map(
    (scope): SampleNode => ({
      operator: "fused",
      scope: `update/${scope}`,
      phase: "update",
      flops: 12 * parameters,
      bytes: 7 * f32 * parameters,
      resultBytes: f32 * parameters,
    }),
  );
  return [...forward, ...withBuckets, ...update];
};

/** Returns the number of elements of all parameters. */
export const parameterCount = (blocks: number): number => 2 * vocabulary * width + blocks * 12 * width * width;

/** Returns the bytes of the gradients in a bucket; all buckets have the same size. */
export const bucketBytes = (blocks: number, buckets: number): number =>
  Math.round((f32 * parameterCount(blocks)) / buckets);
