import { writeFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { callOf } from "../src/shaders/call.ts";
import { type CommandResult, inProcess } from "./in-process.ts";

const shaders = (...args: string[]): Promise<CommandResult> => inProcess("shaders", ...args);

const headings = (text: string): string[] => text.match(/^\/\/ [\w-]+(, [\w-]+)*: .*(?=\n\/\/ shader)/gm) ?? [];

describe("shaders", () => {
  // To write a new file, run `vitest run apps/profiler/test/shaders.test.ts -u`.
  test("prints the text of a function's shaders", async () => {
    const { code, stdout, stderr } = await shaders("softmax", "--shapes", "3x8");
    expect([code, stderr]).toEqual([0, ""]);
    await expect(stdout).toMatchFileSnapshot("golden/shaders.wgsl.golden");
  });

  test("supports types, options and gradients of operands", async () => {
    const { code, stdout } = await shaders(
      "attention",
      "--shapes",
      "1x2x8x4,1x2x8x4,1x2x8x4",
      "--dtypes",
      "f16",
      "--with",
      '{"causal":true}',
      "--gradient",
    );
    expect(code).toBe(0);
    expect(headings(stdout).map((line) => /^\/\/ ([\w-]+)/.exec(line)![1])).toContain("attention-backward");
    expect(stdout).toContain("i32(query) + 1"); // the causal mask
    expect((await shaders("topK", "--shapes", "2x50", "--with", "[7]")).stdout).toContain("top-k");
  });

  test.each<[args: string[], words: RegExp]>([
    [[], /neither/],
    [["matmul", "--job", "job.yaml"], /both/],
    [["matmull", "--shapes", "2x2,2x2"], /no tensor function "matmull"; use one of .*matmul/],
    [["matmul"], /needs --shapes/],
    [["matmul", "--shapes", "2x,2x2"], /--shapes: "2x" is not a shape/],
    [["matmul", "--shapes", "2x3,4x5"], /\[2, 3\] and \[4, 5\]/],
    [["matmul", "--shapes", "2x3"], /operand 2 is missing/],
    [["exp", "--shapes", "2", "--dtypes", "f64"], /"f64" is not a storage type/],
    [["add", "--shapes", "2,2", "--dtypes", "f32,f32,f32"], /names 3 types for 2 operands/],
    [["softmax", "--shapes", "2x2", "--with", "{"], /is not JSON/],
    [["top-k", "--shapes", "9", "--with", "3"], /write '\[3\]'/],
    [["one-hot", "--shapes", "4", "--dtypes", "i32", "--with", "[3]", "--gradient"], /has no gradient/],
    [["--job", "no-such-job.yaml"], /no-such-job/],
  ])("rejects %j in one line", async (args, words) => {
    const { code, stdout, stderr } = await shaders(...args);
    expect(stderr).toMatch(words);
    expect([code, stdout, stderr.trim().split("\n").length]).toEqual([2, "", 1]);
  });

  test("parses shapes", () => {
    const shape = fc.array(fc.nat(2 ** 20), { maxLength: 4 });
    fc.assert(
      fc.property(fc.array(shape, { minLength: 1, maxLength: 4 }), (shapes) => {
        const text = shapes.map((sizes) => (sizes.length === 0 ? "scalar" : sizes.join("x"))).join(",");
        expect(callOf("add", { shapes: text, dtypes: "f32" }).specs.map((spec) => spec.shape)).toEqual(shapes);
      }),
    );
  });
});

describe("shaders of a job", () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "skein-shaders-test-"));
    writeFileSync(
      join(folder, "job.yaml"),
      `name: tiny
ranks: 2
backend: webgpu
batch: 32
steps: 30
data: { kind: mnist, trainSamples: 640, testSamples: 203 }
model: { kind: mlp, hidden: [16] }
optimizer: { kind: adamw }
learningRate: { peak: 0.005 }
`,
    );
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  test("prints the shaders of a job's step, for any backend of this machine", async () => {
    const { code, stdout, stderr } = await shaders("--job", join(folder, "job.yaml"));
    expect([code, stderr]).toEqual([0, ""]);
    expect(headings(stdout).join("\n")).toContain("matmul");
    expect(headings(stdout).join("\n")).toContain("cross-entropy-backward");
  });
});
