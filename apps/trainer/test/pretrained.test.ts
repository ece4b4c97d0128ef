import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { modelOf } from "@skein/pretrained";
import { loadPretrained, savePretrained } from "@skein/pretrained/node";
import { byteLevelTokenizer } from "@skein/testing";
import { evaluate, flattenTree, type NdArray, randomKey, referenceBackend, type Tensor } from "@skein/tensor-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { evaluateRun } from "../src/commands/evaluate-command.ts";
import { exportHuggingFace } from "../src/export/hugging-face.ts";
import { exportOnnxModel } from "../src/export/onnx.ts";
import { generateText } from "../src/generate/generate-text.ts";
import { nextLogits } from "../src/generate/next-logits.ts";
import { openTextModel } from "../src/generate/text-model.ts";
import { openSingleRankBackend } from "../src/backend/single-rank-backend.ts";
import { openSavedRun } from "../src/output-folder/saved-run.ts";
import { train, type TrainJob } from "../src/train.ts";
import { skeinTrain } from "./cli.ts";

const config = {
  model_type: "llama",
  vocab_size: 264, // larger than the vocabulary of the tokenizer, as in many checkpoints
  hidden_size: 16,
  intermediate_size: 24,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  max_position_embeddings: 48,
};

let folder: string;
const place = (...names: string[]): string => join(folder, ...names);
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "skein-pretrained-"));
  const fresh = await evaluate((key: Tensor) => modelOf(config).init(key), referenceBackend())(randomKey(3));
  await savePretrained(place("llama"), { config, ...fresh }, { dtype: "bf16" });
  mkdirSync(place("words"));
  for (const [name, text] of Object.entries(byteLevelTokenizer())) writeFileSync(place("words", name), text);
  writeFileSync(place("text.txt"), "the thin thief gave the thing to them, then they went there\n".repeat(40));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const job = (more: object = {}): TrainJob => ({
  ranks: 2,
  batch: 8,
  steps: 12,
  backend: "cpu",
  data: { kind: "text", file: place("text.txt"), tokenizer: place("words"), window: 16, testSamples: 5 },
  model: { kind: "pretrained", folder: place("llama") },
  optimizer: { kind: "adamw" },
  learningRate: { peak: 0.01 },
  replicas: { checkEverySteps: 1 },
  ...more,
});

const bitsOf = (tree: unknown): readonly (readonly number[])[] =>
  flattenTree<NdArray>(tree).leaves.map((array) => [...array.bytes()]);

describe("a job that fine-tunes a checkpoint of Hugging Face", () => {
  test("starts from its weights, or from fresh ones of the same sizes", async () => {
    const still = { steps: 1, optimizer: { kind: "sgd" }, learningRate: { peak: 1e-30 } } as const;
    const begun = await train(job(still), { output: place("begun") });
    const { params } = await loadPretrained(place("llama"));
    expect(bitsOf(begun.parameters())).toEqual(bitsOf(params));
    const fresh = await train(
      job({ ...still, model: { kind: "pretrained", folder: place("llama"), weights: "none" } }),
      {
        output: place("fresh"),
      },
    );
    expect(bitsOf(fresh.parameters())).not.toEqual(bitsOf(params));
  });

  test("is evaluated, exported, loaded and continued the same wherever the folder is", async () => {
    const output = place("run");
    const { summary } = await train(job(), { output });
    const run = await openSavedRun(output);
    const { lossSum, count } = await evaluateRun(run, () => undefined);
    expect(lossSum / count).toBe(summary!.testLoss);
    expect(summary!.testLoss).toBeLessThan(5); // ln 264 = 5.6

    expect(await exportHuggingFace(run, place("mine"))).toEqual({
      files: ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"],
      remarks: [],
    });
    expect(bitsOf((await loadPretrained(place("mine"))).params)).toEqual(bitsOf(run.params));
    await expect(exportHuggingFace(run, place("mine"))).rejects.toThrow(/mine/);

    expect(await exportOnnxModel(run, place("mine.onnx"))).toEqual([place("mine.onnx")]);
    expect(readFileSync(place("mine.onnx")).includes("params.blocks.0.gate")).toBe(true);
    const [half, weights] = await exportOnnxModel(run, place("half.onnx"), { dtype: "f16", above: 0 });
    expect(half).toBe(place("half.onnx"));
    expect(readFileSync(half!).includes(basename(weights!))).toBe(true);
    expect(statSync(weights!).size).toBeLessThan(0.7 * statSync(place("mine.onnx")).size);

    const { backend, close } = await openSingleRankBackend({ backend: "cpu", blas: "off" });
    try {
      // longer than the context of 48, so that the window slides for the last tokens
      const asked = { prompt: "the th", tokens: 60, temperature: 0.9, seed: 4, count: 2 };
      const pieces = ["", ""];
      const onText = (text: string, index: number): void => void (pieces[index] += text);
      const texts = await generateText(await openTextModel(output), { ...asked, onText }, backend);
      expect(pieces).toEqual(texts);
      expect(texts[0]).not.toBe(texts[1]);
      const exported = await openTextModel(place("mine"));
      expect(await generateText(exported, asked, backend)).toEqual(texts);
      // generation with a KV cache equals generation that recomputes all tokens for each step
      expect(await generateText({ ...exported, usesKeyValueCache: false }, asked, backend)).toEqual(texts);
      const shorter = await generateText(exported, { ...asked, tokens: 20, count: 1 }, backend);
      expect(texts[0]!.startsWith(shorter[0]!)).toBe(true);
      const stop = texts[0]!.slice(5, 8);
      const stopped = await generateText(exported, { ...asked, count: 1, stop }, backend);
      expect(stopped[0]).toBe(texts[0]!.slice(0, texts[0]!.indexOf(stop)));
      await expect(generateText(exported, { ...asked, prompt: "", count: 1 }, backend)).resolves.toHaveLength(1);

      const [next, shortest] = [nextLogits(exported, 8, backend), nextLogits(exported, 3, backend)];
      const long = Array.from({ length: 20 }, (_, i) => (i * 37) % 256);
      const [slid, cut] = [await next.of(long), await next.of(long.slice(-8))];
      slid.forEach((score, i) => expect(score).toBeCloseTo(cut[i]!, 4));
      const [filled, exact] = [await next.of([5, 6, 7]), await shortest.of([5, 6, 7])];
      filled.forEach((score, i) => expect(score).toBeCloseTo(exact[i]!, 4));
    } finally {
      await close();
    }
  });

  test("resumes when the folder is gone, and reports when it holds other weights", async () => {
    const moved = place("moved");
    mkdirSync(moved);
    for (const name of ["config.json", "model.safetensors"])
      writeFileSync(join(moved, name), readFileSync(place("llama", name)));
    const from = (steps: number) => job({ steps, model: { kind: "pretrained", folder: moved } });
    const output = place("going-on");
    await train(from(2), { output });
    // flips one bit of a weight
    const weights = readFileSync(join(moved, "model.safetensors"));
    weights[weights.length - 1]! ^= 1;
    writeFileSync(join(moved, "model.safetensors"), weights);
    const notes: string[] = [];
    await train(from(3), { output, resume: true, onNote: (line) => notes.push(line) });
    expect(notes.join("\n")).toContain("the job differs from the one that wrote the checkpoint");
    rmSync(moved, { recursive: true });
    const ended = await skeinTrain(folder, "resume", output, "--steps", "4", "--quiet");
    expect(ended).toMatchObject({ code: 0 });
  });
});

describe("a mismatch is refused in one line before the first step", () => {
  const refused = async (more: object, rule: RegExp): Promise<void> => {
    await expect(train(job(more), { output: place("refused") })).rejects.toThrow(rule);
  };

  test("of vocabulary, context, model type or kind of samples", async () => {
    await savePretrained(place("small"), {
      config: { ...config, vocab_size: 100 },
      ...(await evaluate(
        (key: Tensor) => modelOf({ ...config, vocab_size: 100 }).init(key),
        referenceBackend(),
      )(randomKey(3))),
    });
    await refused(
      { model: { kind: "pretrained", folder: place("small") } },
      /^model\.folder: the llama of its config\.json has 100 tokens, but the tokens of this data go up to 258; use the/,
    );
    const mistral = { ...config, model_type: "mistral", sliding_window: 8 };
    writeFileSync(place("small", "config.json"), JSON.stringify(mistral));
    await refused(
      { model: { kind: "pretrained", folder: place("small"), weights: "none" } },
      /does not fit these samples, whose inputs are i32\[16\] with tokens: llama: .*\b8\b/,
    );
    writeFileSync(place("small", "config.json"), JSON.stringify({ ...config, model_type: "lama" }));
    await refused(
      { model: { kind: "pretrained", folder: place("small") } },
      /config\.json has model_type "lama", .* did you mean llama\?/,
    );
    await refused(
      { mesh: { tensor: 2 } },
      /mesh\.tensor shards matrices over 2 ranks, but a pretrained cannot be sharded/,
    );
  });

  test("of a folder that does not exist or is damaged", async () => {
    await refused(
      { model: { kind: "pretrained", folder: place("nowhere") } },
      /nowhere.config\.json cannot be read \(ENOENT\)/,
    );
    mkdirSync(place("damaged"));
    for (const name of ["config.json", "model.safetensors"])
      writeFileSync(place("damaged", name), readFileSync(place("llama", name)));
    truncateSync(place("damaged", "model.safetensors"), 5000);
    await refused({ model: { kind: "pretrained", folder: place("damaged") } }, /takes|bytes/);
    appendFileSync(place("words", "other.json"), "{}");
    await refused(
      { data: { kind: "text", file: place("text.txt"), tokenizer: place("words", "other.json"), window: 16 } },
      /other\.json is not a tokenizer that @huggingface\/tokenizers can read/,
    );
  });
});

test("usage errors of commands are reported", async () => {
  const imported = await skeinTrain(folder, "import", "llama", "--output", "imported.yaml", "--json");
  expect(JSON.parse(imported.stdout)).toMatchObject({ kind: "llama", dtypes: ["bf16"], job: "imported.yaml" });
  const again = await skeinTrain(folder, "import", "llama", "--output", "imported.yaml");
  expect([again.code, again.stderr]).toEqual([2, expect.stringContaining("--output imported.yaml already exists")]);
  const wrong = await skeinTrain(folder, "generate", "llama", "--prompt", "x", "--top-p", "2");
  expect([wrong.code, wrong.stderr]).toEqual([
    2,
    expect.stringContaining('--top-p is "2", but must be a number above 0'),
  ]);
});
