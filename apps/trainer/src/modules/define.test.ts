import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Job, moduleKeys, modulesOf, parseJob, withModules } from "@skein/job/node";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { loadJob } from "../job-file/load-job.ts";
import { jobHashOf } from "../preparation/job-hash.ts";
import { defineData, defineModel } from "./define.ts";
import { makeOwn } from "./load-module.ts";
import type { StandardSchema } from "./standard-schema.ts";

let folder: string;
beforeAll(() => (folder = mkdtempSync(join(tmpdir(), "skein-define-"))));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let numFiles = 0;
/** Writes a module with a new file name, because Node caches imported modules. */
const moduleFile = (text: string): string => {
  const file = join(folder, `module-${numFiles++}.mjs`);
  writeFileSync(file, text);
  return file;
};

const helpers = new URL("./define.ts", import.meta.url).href;
const zod = import.meta.resolve("zod");

/** Writes a module with a model whose options are checked by a zod schema. */
const defined = (): string =>
  moduleFile(`import { defineModel } from "${helpers}";
import { z } from "${zod}";
export default defineModel({
  options: z.strictObject({ hidden: z.int().min(1).default(32), act: z.strictObject({ kind: z.enum(["relu", "gelu"]) }).optional() }),
  create: (task, options) => ({ task, options }),
});
`);

const module = (file: string, options: object = {}) =>
  ({ kind: "module", file, export: "default", options: { ...options } }) as const;

describe("options of a module", () => {
  test("are parsed by its schema, with its defaults; without one they are passed unchanged", async () => {
    const file = defined();
    expect(await makeOwn("model", module(file), "the task")).toEqual({ task: "the task", options: { hidden: 32 } });
    const plain = moduleFile("export default (task, options) => ({ task, options });");
    expect(await makeOwn("model", module(plain, { any: [1] }), "the task")).toEqual({
      task: "the task",
      options: { any: [1] },
    });
  });

  test("may be checked by any library with Standard Schema, asynchronously too", async () => {
    const upper: StandardSchema<{ name: string }, { name: string }> = {
      "~standard": {
        version: 1,
        vendor: "of our own",
        validate: async (value) => {
          const { name } = value as { name?: unknown };
          return typeof name === "string"
            ? { value: { name: name.toUpperCase() } }
            : { issues: [{ message: "give a name", path: [{ key: "name" }] }] };
        },
      },
    };
    const make = defineData({ options: upper, create: ({ name }) => ({ name }) as never });
    expect(make({ name: "typed as what the schema gives" })).toEqual({ name: "typed as what the schema gives" });
    (globalThis as { upper?: unknown }).upper = upper;
    const file = moduleFile(`import { defineData } from "${helpers}";
export default defineData({ options: globalThis.upper, create: (options) => options });`);
    expect(await makeOwn("data", module(file, { name: "skein" }))).toEqual({ name: "SKEIN" });
    await expect(makeOwn("data", module(file, { name: 3 }))).rejects.toThrow(
      /^data\.options\.name is 3: give a name; change it$/,
    );
  });

  const jobText = (file: string, options: string): string => `name: own
batch: 4
steps: 1
data: { kind: mnist }
model:
  kind: module
  file: ${file}
  options:
    ${options}
optimizer: { kind: sgd }
learningRate: { peak: 0.1 }
`;

  test("that a schema refuses are reported with file and line, like our own keys", async () => {
    const path = join(folder, "job.yaml");
    const outcome = async (options: string, overrides: Parameters<typeof loadJob>[1] = []): Promise<string> => {
      writeFileSync(path, jobText(defined(), options));
      return loadJob(path, overrides).then(
        () => "fine",
        (error: Error) => `${(error as { code?: string }).code}: ${error.message}`,
      );
    };
    expect(await outcome("hidden: 3")).toBe("fine");
    expect(await outcome("hidden: many")).toMatch(
      /^config: \S+job\.yaml:9:5: model\.options\.hidden is "many": .*number.*; change it$/,
    );
    expect(await outcome("{ hidden: 0, act: { kind: tanh } }")).toMatch(
      /^config: \S+:9:7: model\.options\.hidden is 0: .*\n\S+:9:25: model\.options\.act\.kind is "tanh": .*; change it$/,
    );
    expect(await outcome("hiden: 3")).toMatch(/^config: \S+:8:3: model\.options is .*: .*hiden.*; change it$/);
    const set = { path: ["model", "options", "hidden"], value: -1, origin: "--set model.options.hidden=-1" };
    expect(await outcome("hidden: 3", [set])).toMatch(
      /^config: --set model\.options\.hidden=-1: model\.options\.hidden is -1/,
    );
  });

  test("whose schema throws, and a module for another key, are faults of the module", async () => {
    const throws = moduleFile(`import { defineModel } from "${helpers}";
export default defineModel({
  options: { "~standard": { version: 1, vendor: "x", validate: () => { throw new TypeError("no schema"); } } },
  create: () => 0,
});`);
    await expect(makeOwn("model", module(throws))).rejects.toThrow(
      /^model\.file \S+: the schema of its options: TypeError: no schema \(at \S+\.mjs:3:\d+\); correct it there$/,
    );
    await expect(makeOwn("data", module(defined()))).rejects.toThrow(
      /^data\.file \S+: its export "default" was made by defineModel, which is for model, but is used for data; name/,
    );
  });

  test("are typed by the schema", () => {
    const make = defineModel({
      options: z.object({ hidden: z.int().default(3) }),
      create: (_, { hidden }) => ({ hidden: hidden satisfies number }) as never,
    });
    // @ts-expect-error a string is no width
    const wrong = (): unknown => make({} as never, { hidden: "3" });
    expect(wrong()).toEqual({ hidden: "3" }); // the schema does not check a direct call
  });
});

describe("the table of keys that may name a module", () => {
  test("has the modules of a job file, and a settled job that is written and read again has the same hash", async () => {
    const file = moduleFile("export default () => 0;");
    const part = `{ kind: module, file: ${file}, options: { any: 1 } }`;
    const text = `name: own
batch: 4
steps: 1
data: { kind: module, file: ${file}, trainSamples: 8 }
model: ${part}
optimizer: ${part}
learningRate: { peak: 0.1, schedule: ${part} }
compression: { kind: module, file: ${file}, errorFeedback: true, warmupSteps: 2 }
metrics: ${part}
callbacks: ${part}
`;
    const path = join(folder, "all.yaml");
    writeFileSync(path, text);
    const settled = await loadJob(path);
    expect(modulesOf(settled).map(([key]) => key)).toEqual(Object.keys(moduleKeys));
    expect(modulesOf(settled).every(([, { digest }]) => /^[0-9a-f]{64}$/.test(digest!))).toBe(true);
    const again = parseJob(JSON.stringify(settled), "job.json");
    expect(again).toEqual(settled);
    expect(jobHashOf(again)).toBe(jobHashOf(settled));
    expect(JSON.stringify(again)).toBe(JSON.stringify(settled));
  });

  const keys = Object.keys(moduleKeys);

  test("finds and replaces modules, and nothing else; a hash depends on the content, not the location", () => {
    fc.assert(
      fc.property(fc.subarray(keys), fc.string({ minLength: 1, maxLength: 5 }), (chosen, digest) => {
        const job: Record<string, unknown> = { name: "own", data: { kind: "mnist" }, learningRate: { peak: 1 } };
        for (const key of chosen) {
          const [first, second] = key.split(".") as [string, string | undefined];
          const part = { ...module(`/somewhere/${key}`), digest };
          job[first] = second === undefined ? part : { ...(job[first] as object), [second]: part };
        }
        const before = structuredClone(job);
        const found = modulesOf(job);
        expect(found.map(([key]) => key).toSorted()).toEqual(chosen.toSorted());
        const moved = withModules(job, (one) => ({ ...one, file: "/elsewhere" }));
        expect(job).toEqual(before);
        expect(modulesOf(moved).map(([, { file }]) => file)).toEqual(chosen.map(() => "/elsewhere"));
        const whole = { memory: { recompute: "none" }, mesh: { expert: 1, tensor: 1 }, model: { kind: "mlp" } };
        const hash = (of: object): string => jobHashOf({ ...whole, ...of } as unknown as Job);
        expect(hash(moved)).toBe(hash(job));
        const steering = chosen.filter((key) => !["metrics", "callbacks"].includes(key));
        const altered = withModules(job, (one) => ({ ...one, digest: `${one.digest}!` }));
        expect(hash(altered) === hash(job)).toBe(steering.length === 0);
      }),
    );
  });
});
