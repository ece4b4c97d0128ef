import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createCpuBackend } from "@skein/cpu-kernels";
import { gpt, type LabelledBatch, type Model, type Recompute, resnet18 } from "@skein/models";
import { evaluate, flattenTree, NdArray, randomKey, type Tensor, trace, valueAndGradWithAux } from "@skein/tensor-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { loadJob } from "../src/job-file/load-job.ts";
import { prepare } from "../src/preparation/prepare.ts";
import { type StepMemory, stepMemoryOf } from "../src/preparation/step-memory.ts";
import { jobFolder, skeinTrain } from "./cli.ts";

const bytes = (shape: readonly number[], below: number, dtype: "u8" | "i32"): NdArray =>
  NdArray.from(
    Array.from({ length: shape.reduce((product, size) => product * size, 1) }, (_, i) => (i * i + 3 * i) % below),
    shape,
    dtype,
  );

const rows: readonly {
  readonly name: string;
  readonly model: (recompute: Recompute) => unknown;
  readonly batch: LabelledBatch | object;
}[] = [
  {
    name: "gpt with dropout",
    model: (recompute) =>
      gpt({ vocabulary: 13, contextLength: 9, width: 12, numLayers: 4, numHeads: 3, dropoutRate: 0.2, recompute }),
    batch: { inputs: bytes([3, 9], 13, "i32"), labels: bytes([3, 9], 13, "i32") },
  },
  {
    name: "resnet18",
    model: (recompute) => resnet18({ channels: [3, 4, 5, 6], numClasses: 4, recompute }),
    batch: { inputs: bytes([2, 8, 8, 3], 256, "u8"), labels: bytes([2], 4, "i32") },
  },
];

describe.each(rows)("blocks of $name", ({ model, batch }) => {
  test("with recomputation give loss, gradients and statistics the same bits, in less memory", async () => {
    // The relaxed build rounds a product and a sum in one kernel only once, so its results depend on which operations
    // are fused.
    const backend = await createCpuBackend({ build: "simd" });
    const of = async (recompute: Recompute): Promise<{ readonly bits: string[]; readonly workspace: number }> => {
      const { init, loss } = model(recompute) as Model;
      const start = await evaluate((key: Tensor) => init(key), backend)(randomKey(5));
      const step = (own: typeof start, data: LabelledBatch, key: Tensor): unknown =>
        valueAndGradWithAux((params: unknown) => loss(params, own.state, data, { train: true, key }))(own.params);
      const result: unknown = await evaluate(step as never, backend)(...([start, batch, randomKey(6)] as never as []));
      const { graph } = trace(step as never, [start, batch, randomKey(6)] as never);
      return {
        bits: flattenTree<NdArray>(result).leaves.map((leaf) => [...leaf.bytes()].join()),
        workspace: backend.workspaceBytes!(graph),
      };
    };
    const [none, blocks] = [await of("none"), await of("blocks")];
    expect(blocks.bits).toEqual(none.bits);
    expect(blocks.workspace).toBeLessThan(none.workspace);
  });
});

describe("a job with recomputation", () => {
  let folder: string;
  let remove: () => void;
  let memory: StepMemory;
  const model = "model={kind: gpt, layers: 4, width: 16, heads: 2}";

  /** Returns the checkpoint of a GPT on two ranks after some steps. */
  const run = async (...set: string[]): Promise<Buffer> => {
    const output = `out-${set.join("-").replaceAll(/[^a-z0-9]/g, "")}`;
    const all = [model, ...set].flatMap((text) => ["--set", text]);
    const { code, stderr } = await skeinTrain(folder, "run", "job.yaml", "--output", output, ...all);
    expect(code, stderr).toBe(0);
    return readFileSync(join(folder, output, "checkpoints/step-00000003/shared.safetensors"));
  };

  beforeAll(async () => {
    ({ folder, remove } = jobFolder());
    writeFileSync(join(folder, "text.txt"), "the quick brown fox jumps over the lazy dog. ".repeat(100));
    writeFileSync(
      join(folder, "job.yaml"),
      `name: small
ranks: 2
backend: cpu
batch: 8
steps: 3
data: { kind: text, file: text.txt, window: 24 }
${model.replace("=", ": ")}
optimizer: { kind: adamw }
learningRate: { peak: 0.005 }
evaluation: { batch: 8 }
`,
    );
    memory = await stepMemoryOf(await prepare(await loadJob(join(folder, "job.yaml"), [])));
  });
  afterAll(() => remove());

  test("gives the same bits on two ranks: blocks in processes, and within a memory limit with accumulated gradients", {
    tags: "full",
  }, async () => {
    const plain = await run();
    const bound = `memory={recompute: auto, maxBytes: ${Math.round(0.6 * memory.bytes)}}`;
    expect(await run("memory.recompute=blocks", "transport=tcp")).toEqual(plain);
    expect(await run(bound, "overlap=dear")).toEqual(plain);
  });

  test("reports its cost, and an impossible limit is refused with the least possible memory", async () => {
    const path = ["memory"];
    const within = async (maxBytes: number): Promise<StepMemory> =>
      stepMemoryOf(
        await prepare(
          await loadJob(join(folder, "job.yaml"), [{ path, value: { recompute: "auto", maxBytes }, origin: "test" }]),
        ),
      );
    const { bytes: now, flops, keepingAll } = await within(Math.round(0.6 * memory.bytes));
    expect(now).toBeLessThanOrEqual(0.6 * memory.bytes);
    expect(keepingAll).toEqual({ bytes: memory.bytes, flops: memory.flops });
    expect(flops).toBeGreaterThan(memory.flops);

    await expect(within(1000)).rejects.toThrow(
      /^memory.maxBytes: a step takes \d+ bytes of intermediates, .* the least .* is \d+: allow so many, or .*$/,
    );
  });
});
