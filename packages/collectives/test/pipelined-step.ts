import {
  add,
  checkpoint,
  crossEntropy,
  type CutStep,
  cutStages,
  dropout,
  embedding,
  flattenTree,
  foldIn,
  full,
  layerNorm,
  matmul,
  mean,
  mixedPrecision,
  multiply,
  NdArray,
  relu,
  stageOfRank,
  tap,
  type Tensor,
  transpose,
  valueAndGradWithAux,
} from "@skein/tensor-core";

// A training step of a small language model with tied embeddings, dropout, and a metric per block. Runs on a single
// rank, or as stages of a pipeline over micro-batches, after GPipe.

const vocabulary = 7;
const width = 8;
const tokensPerBatch = 6;
export const numMicroBatches = 4;
const numBlocks = 4;

type Params = Record<string, Tensor>;

const loss = (params: Params, tokens: Tensor, labels: Tensor, key: Tensor): readonly [Tensor, readonly Tensor[]] => {
  let x = embedding(params["embedding"]!, tokens);
  const sizes: Tensor[] = [];
  for (let i = 0; i < numBlocks; i++) {
    const block = (hidden: Tensor): Tensor => {
      const inner = relu(matmul(layerNorm(hidden, params["gain"]!, params["shift"]!), params[`in-${i}`]!));
      return dropout(matmul(inner, params[`out-${i}`]!), 0.25, foldIn(key, i));
    };
    x = tap(`block-${i}`, add(x, checkpoint(block)(x)));
    sizes.push(mean(multiply(x, x)));
  }
  return [crossEntropy(matmul(x, transpose(params["embedding"]!)), labels), sizes];
};

const numbers = (shape: readonly number[], seed: number): NdArray =>
  NdArray.from(
    Array.from(
      { length: shape.reduce((product, size) => product * size, 1) },
      (_, i) => (((i * 7 + seed * 5) % 13) - 6) / 16,
    ),
    shape,
  );

export const params: Record<string, NdArray> = {
  embedding: numbers([vocabulary, width], 1),
  gain: numbers([width], 2),
  shift: numbers([width], 3),
  ...Object.fromEntries(
    Array.from({ length: numBlocks }, (_, i) => [
      [`in-${i}`, numbers([width, 2 * width], 4 + i)],
      [`out-${i}`, numbers([2 * width, width], 9 + i)],
    ]).flat() as [string, NdArray][],
  ),
};

export const batches: NdArray[][] = Array.from({ length: numMicroBatches }, (_, m) => [
  NdArray.from(
    Array.from({ length: tokensPerBatch }, (__, i) => (i * 3 + m) % vocabulary),
    [tokensPerBatch],
    "i32",
  ),
  NdArray.from(
    Array.from({ length: tokensPerBatch }, (__, i) => (i * 5 + m) % vocabulary),
    [tokensPerBatch],
    "i32",
  ),
  NdArray.from([7, m], [2], "u32"),
]);

const passesOf = (isMixed: boolean): (typeof mixedPrecision)[] => (isMixed ? [mixedPrecision] : []);

export const cutInto = (numStages: number, isMixed: boolean): CutStep =>
  cutStages(loss as never, [params, ...batches[0]!] as never, {
    cuts: Array.from({ length: numStages - 1 }, (_, s) => `block-${Math.floor(((s + 1) * numBlocks) / numStages) - 1}`),
    passes: passesOf(isMixed),
  });

const summed = (parts: readonly (readonly Tensor[])[]): Tensor[] =>
  parts[0]!.map((_, i) => parts.map((part) => part[i]!).reduce((sum, one) => add(sum, one)));

/** Results of a step: losses and metrics of its micro-batches, and the gradients of the mean loss. */
interface StepResult {
  readonly losses: readonly Tensor[];
  readonly figures: readonly (readonly Tensor[])[];
  readonly gradients: readonly Tensor[];
}

/** The step of a single rank. */
export const oneRankStep = (own: Params, micro: readonly (readonly Tensor[])[]): StepResult => {
  const results = micro.map((batch) =>
    valueAndGradWithAux((p: Params) => {
      const [value, figures] = loss(p, ...(batch as [Tensor, Tensor, Tensor]));
      return [multiply(value, 1 / numMicroBatches), [value, figures] as const] as const;
    })(own),
  );
  return {
    losses: results.map(([, [value]]) => value),
    figures: results.map(([, [, figures]]) => figures),
    gradients: summed(results.map(([, , gradients]) => flattenTree<Tensor>(gradients).leaves)),
  };
};

export const oneRankPasses: (isMixed: boolean) => ReturnType<typeof passesOf> = passesOf;

/**
 * Returns the step of one pipeline stage: the forward passes of all micro-batches, then all backward passes in reverse
 * order.
 */
export const rankStep =
  (cut: CutStep) =>
  (own: readonly Tensor[], micro: readonly (readonly Tensor[])[]): StepResult => {
    const { stage, forward, backward, sumShared } = stageOfRank(cut, "pipeline");
    const passed = micro.map((batch) =>
      forward(
        own,
        stage.args.map((leaf) => batch[leaf]!),
      ),
    );
    const weight = full([], 1 / numMicroBatches);
    const parts = passed.toReversed().map((one) => backward(one, weight));
    const isLast = stage === cut.stages.at(-1);
    return {
      losses: isLast ? passed.map(({ outgoing }) => outgoing[0]!) : [],
      figures: passed.map(({ aux }) => aux),
      gradients: sumShared(summed(parts.toReversed())),
    };
  };
