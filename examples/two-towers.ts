// Trains a two-tower model, which maps a question and its answer to nearby vectors, on two ranks. Samples are a tree of
// several inputs without labels; the loss, a metric and a callback are defined in this program.
// Run: pnpm exec node examples/two-towers.ts
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { arrayRecords, type Records } from "@skein/data";
import { dense, initDense, rowLossModel } from "@skein/models";
import {
  arange,
  argmax,
  crossEntropyPerRow,
  equal,
  matmul,
  NdArray,
  oneHot,
  splitKey,
  sum,
  type Tensor,
} from "@skein/tensor-core";
import { train } from "skein-train";

const words = 12;
const width = 8;

/**
 * Returns question-answer pairs. An answer has three words. Its question has the same words in another order, and a
 * field `kind` from 0 to 2.
 */
const pairs = (count: number, from: number): Records => {
  const wordAt = (i: number, at: number): number => Math.floor(words * Math.abs(Math.sin(from + 3 * i + at))) % words;
  const texts = Array.from({ length: count }, (_, i) => [0, 1, 2].map((at) => wordAt(i, at)));
  return arrayRecords({
    question: {
      text: NdArray.from(
        texts.flatMap(([a, b, c]) => [c!, a!, b!]),
        [count, 3],
        "i32",
      ),
      kind: NdArray.from(
        texts.map((_, i) => i % 3),
        [count],
        "u8",
      ),
    },
    answer: NdArray.from(texts.flat(), [count, 3], "i32"),
  });
};

interface Pairs {
  readonly question: { readonly text: Tensor; readonly kind: Tensor };
  readonly answer: Tensor;
}

/** Computes the similarity of each question of a batch to each answer of the batch, [B, B]. */
const similarity = ({ question, answer }: { readonly question: Tensor; readonly answer: Tensor }): Tensor =>
  matmul(question, answer, { transposeB: true });

const countsOf = (text: Tensor): Tensor => sum(oneHot(text, words), { dims: [1] }); // [B, words]

const model = rowLossModel({
  init: (key) => {
    const [question, answer] = splitKey(key, 2);
    return {
      params: { question: initDense(question!, [words, width]), answer: initDense(answer!, [words, width]) },
      state: {},
    };
  },
  apply: (params, state, { question, answer }: Pairs) => [
    { question: dense(params.question, countsOf(question.text)), answer: dense(params.answer, countsOf(answer)) },
    state,
  ],
  // all other answers of the batch are negatives
  losses: (towers, { answer }: Pairs) => crossEntropyPerRow(similarity(towers), arange(answer.shape[0]!)),
  rows: (towers, { answer }) => ({ found: equal(argmax(similarity(towers)), arange(answer.shape[0]!)) }),
  metrics: { found: { sum: "found", per: "count" } },
});

const { summary } = await train(
  {
    name: "two-towers",
    ranks: 2,
    batch: 32,
    steps: 150,
    data: { train: pairs(320, 0), test: pairs(64, 0.4), predicts: "own" },
    model,
    optimizer: { kind: "adam" },
    learningRate: { peak: 0.02 },
    evaluation: { everySteps: 50, batch: 32 },
    callbacks: {
      onEvaluation: ({ step, loss, metrics }) =>
        console.log(`step ${step}: loss ${loss.toFixed(3)}, found`, metrics?.["found"]),
    },
  },
  { output: join(mkdtempSync(join(tmpdir(), "skein-")), "run") },
);
if (!(summary!.metrics!["found"]! > 0.6)) throw new Error("training went wrong");
