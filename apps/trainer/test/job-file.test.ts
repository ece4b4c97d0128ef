import { ConfigError } from "@skein/cli/node";
import { jobJsonSchema, parseJob, parseOverride } from "@skein/job/node";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { readJob } from "../src/job-file/load-job.ts";

const good = `name: digits
ranks: 2
batch: 64
epochs: 3
data:
  kind: mnist
model:
  kind: cnn
optimizer:
  kind: adamw
learningRate:
  peak: 0.002
`;

const faultsOf = (text: string, overrides: readonly string[] = []): string[] => {
  try {
    parseJob(text, "jobs/x.yaml", overrides.map(parseOverride));
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError);
    return (error as Error).message.split("\n");
  }
  throw new Error("no fault was found");
};

describe("a valid job", () => {
  test("gets its defaults", () => {
    const job = parseJob(good, "jobs/x.yaml");
    expect(job).toMatchObject({
      seed: 0,
      compression: { kind: "identity" },
      evaluation: { batch: 500 },
      checkpoint: { keep: 3 },
      optimizer: { kind: "adamw", beta1: 0.9, weightDecay: 0.01 },
    });
  });

  test("values of the command line override those of the file", () => {
    const job = parseJob(
      good,
      "jobs/x.yaml",
      ["batch=96", "optimizer={kind: sgd}", "compression.kind=top-k", "steps=7"].map(parseOverride),
    );
    expect(job).toMatchObject({
      batch: 96,
      optimizer: { kind: "sgd" },
      compression: { kind: "top-k", density: 0.01 },
      steps: 7,
    });
    expect(job.epochs).toBeUndefined();
  });
});

describe("one line names location, value, rule and cure", () => {
  test.each<[string, string, string]>([
    [
      "a misspelt key",
      good.replace("optimizer:", "optimiser:"),
      'jobs/x.yaml:9:1: unknown key "optimiser"; did you mean "optimizer"?',
    ],
    [
      "a misspelt inner key",
      good.replace("  peak:", "  peek:"),
      'jobs/x.yaml:12:3: unknown key "learningRate.peek"; did you mean "peak"?',
    ],
    [
      "a misspelt key of a variant",
      good.replace("kind: adamw", "kind: adamw\n  weigthDecay: 0.1"),
      'jobs/x.yaml:11:3: unknown key "optimizer.weigthDecay"; did you mean "weightDecay"?',
    ],
    [
      "a key far from any",
      `${good}zebra: 1\n`,
      'jobs/x.yaml:13:1: unknown key "zebra"; use one of: name, seed, ranks, mesh, zero, backend, blas, threads',
    ],
    [
      "a misspelt kind",
      good.replace("kind: cnn", "kind: cnnn"),
      'jobs/x.yaml:8:3: model.kind is "cnnn", which is unknown; did you mean "cnn"?',
    ],
    [
      "a missing section",
      good.replace("model:\n  kind: cnn\n", ""),
      "jobs/x.yaml:1:1: model is missing; give an object",
    ],
    [
      "a missing kind",
      good.replace("kind: cnn", "{}"),
      "jobs/x.yaml:7:1: model.kind is missing; use one of: mlp, cnn, resnet18, gpt",
    ],
    [
      "a word for a number",
      good.replace("batch: 64", "batch: many"),
      'jobs/x.yaml:3:1: batch is "many", but must be a number; change it',
    ],
    [
      "a fraction for a count",
      good.replace("batch: 64", "batch: 6.5"),
      "jobs/x.yaml:3:1: batch is 6.5, but must be an integer; change it",
    ],
    [
      "a value too small",
      good.replace("peak: 0.002", "peak: 0"),
      "jobs/x.yaml:12:3: learningRate.peak is 0, but must be above 0; raise it",
    ],
    [
      "a value too large",
      good.replace("ranks: 2", "ranks: 65"),
      "jobs/x.yaml:2:1: ranks is 65, but must be at most 64; lower it",
    ],
    [
      "a density above 1",
      `${good}compression:\n  kind: top-k\n  density: 1.5\n`,
      "jobs/x.yaml:15:3: compression.density is 1.5, but must be at most 1; lower it",
    ],
    [
      "more ranks than samples",
      good.replace("batch: 64", "batch: 1"),
      "jobs/x.yaml:3:1: batch: 1 samples cannot be shared among 2 ranks, each rank needs at least one; use a batch of at least 2, or fewer ranks",
    ],
    [
      "a batch that does not divide",
      good.replace("batch: 64", "batch: 65"),
      "jobs/x.yaml:3:1: batch: 65 samples are not divisible by 2 ranks; use a multiple of 2, such as 64 or 66",
    ],
    ["no length", good.replace("epochs: 3\n", ""), "jobs/x.yaml:1:1: neither epochs nor steps is given"],
    [
      "two lengths",
      `${good}steps: 9\n`,
      "jobs/x.yaml:13:1: steps: both epochs (3) and steps (9) are given; give one of them",
    ],
    [
      "a model that cannot learn from the data",
      good.replace("kind: cnn", "kind: gpt"),
      "jobs/x.yaml:8:3: model.kind: a gpt cannot train on mnist; use mlp or cnn or resnet18, or a module of your own",
    ],
    [
      "a name that is no folder",
      good.replace("name: digits", "name: ../x"),
      'jobs/x.yaml:1:1: name is "../x": a name is made of letters',
    ],
    ["broken YAML", "name: [1,\nbatch: 2", "jobs/x.yaml:2:1: invalid YAML"],
    ["a key given twice", `${good}name: again\n`, "jobs/x.yaml:13:1: invalid YAML: Map keys must be unique"],
    [
      "a silence that is longer than a wait",
      `${good}network: { timeoutSeconds: 10, silenceSeconds: 20 }\n`,
      "network.silenceSeconds: a silence of 20 s is longer than network.timeoutSeconds, 10 s; raise network.timeoutSeconds, or use at most 10",
    ],
    [
      "a heartbeat interval that allows no late heartbeat",
      `${good}network: { timeoutSeconds: 10, heartbeatSeconds: 6 }\n`,
      "network.heartbeatSeconds: with a heartbeat every 6 s, one late heartbeat would already exceed a silence of 10 s; use at most 5",
    ],
    ["a list", "- 1", "jobs/x.yaml:1:1: the job is [1], but must be a mapping"],
    ["nothing", "", "jobs/x.yaml:1:1: the job is null"],
  ])("%s", (_, text, line) => {
    const faults = faultsOf(text);
    expect(faults).toHaveLength(1);
    expect(faults[0]).toContain(line);
  });

  test("reports every fault of a file", () => {
    expect(faultsOf(good.replace("batch: 64", "batch: -1").replace("peak: 0.002", "peak: x"))).toHaveLength(2);
  });

  test.each<[string, string]>([
    ["batch=65", "--set batch=65: batch: 65 samples are not divisible by 2 ranks"],
    ["modle.kind=cnn", '--set modle.kind=cnn: unknown key "modle"; did you mean "model"?'],
    [
      "optimizer.kind=adan",
      '--set optimizer.kind=adan: optimizer.kind is "adan", which is unknown; did you mean "adam"?',
    ],
    ["name.x=1", '--set name.x=1: name is "digits" and has no parts'],
    ["batch", "--set batch: must read key=value"],
    ["a.__proto__.b=1", "must read key=value"],
  ])("a fault of the command line names it: %s", (override, line) => {
    expect(faultsOf(good, [override])[0]).toContain(line);
  });

  test.each<[readonly string[], string]>([
    [["compression={kind: top-k, densitty: 0.1}"], 'unknown key "compression.densitty"; did you mean "density"?'],
    [["compression={kind: topk}"], 'compression.kind is "topk", which is unknown; did you mean "top-k"?'],
    [["compression={kind: top-k, values: {kind: one-bit}}"], 'compression.values.kind is "one-bit", which is unknown'],
    [["compression={kind: gaussian-k, values: {kind: qsgd}}"], 'unknown key "compression.values"'],
    [["compression={kind: threshold}"], "compression.threshold is missing; give a number"],
    [["data={kind: webdataset, size: 8}"], "data.file is missing; give a string or an array"],
    [["model=gpt"], 'model is "gpt", but must be an object; give an object, such as { kind: "gpt" }; its keys: kind'],
    [
      ["learningRate=0.1"],
      "learningRate is 0.1, but must be an object; give an object, such as { peak: 0.1 }; its keys: peak, warmup",
    ],
    [
      ["compression={kind: hierarchical-top-k, ranksPerHost: 3}"],
      "compression.ranksPerHost: 2 ranks are not divisible by 3 ranks per host; use a divisor of 2",
    ],
    [
      ["compression={kind: dgc}"],
      "optimizer.kind: compression: dgc applies momentum, so the momentum of adamw would be applied on top; use optimizer: {kind: sgd}",
    ],
    [
      ["compression={kind: one-bit, momentum: 0.9}"],
      "optimizer.kind: compression: one-bit applies momentum, so the momentum of adamw would be applied on top; use optimizer: {kind: sgd}",
    ],
    [
      ["compression={kind: top-k}", "buckets={kind: tuned}"],
      "buckets.kind: tuned buckets change while training runs, but top-k keeps residuals per bucket; use compression: {kind: identity} or another kind of buckets",
    ],
    [
      ["buckets={kind: tuned, minBytes: 9, maxBytes: 8}"],
      "buckets.minBytes: 9 bytes are more than maxBytes, 8; lower minBytes",
    ],
    [
      ["compression={kind: lags}"],
      "buckets.kind: compression: lags needs one bucket per tensor, not fixed-size buckets; use buckets: {kind: per-tensor}",
    ],
    [
      ["buckets={kind: mg-wfbp, plan: simultaneous}"],
      "buckets.plan: plan: simultaneous is for two collectives at a time, but priorities is none; use plan: simultaneous and priorities: spread together, or neither of them",
    ],
    [
      ["overlap=dear", "precision={kind: mixed-f16}"],
      "overlap: with overlap: dear an update is applied in the next step, too late for precision: mixed-f16",
    ],
    [
      ["overlap=dear", "compression={kind: acp-sgd}"],
      "but acp-sgd changes its exchange between steps; use overlap: wait-free",
    ],
    [
      ["overlap=dear", "compression={kind: top-k, warmupSteps: 3}"],
      "but top-k changes its exchange between steps; use overlap: wait-free, or leave the warm-up out",
    ],
  ])("a fault of the exchange: %s", (overrides, line) => {
    expect(faultsOf(good, overrides)[0]).toContain(line);
  });

  test("a file that is not there", () => {
    expect(() => readJob("nowhere.yaml")).toThrow("nowhere.yaml: cannot be read");
  });
});

describe("a hostile job file is rejected in a few lines of bounded length", () => {
  const bomb = Array.from(
    { length: 30 },
    (_, i) => `a${i}: &a${i} [${i === 0 ? "x, x" : `*a${i - 1}, *a${i - 1}`}]`,
  ).join("\n");
  test.each<[string, string, RegExp]>([
    [
      "an unknown alias",
      `${good}seed: *nowhere\n`,
      /^jobs\/x\.yaml:13:7: invalid YAML: Unresolved alias .*: nowhere; correct the file$/,
    ],
    ["an alias bomb", `${good}${bomb}\n`, /^jobs\/x\.yaml:14:10: invalid YAML: Excessive alias count/],
    [
      "an unknown tag",
      good.replace("ranks: 2", "ranks: !!js/function 2"),
      /^jobs\/x\.yaml:2:8: invalid YAML: Unresolved tag/,
    ],
    ["a merge key of YAML 1.1", `%YAML 1.1\n---\n${good}<<: {seed: 3}\n`, /unknown key "<<"/],
    [
      "a huge layer",
      good.replace("kind: cnn", "kind: mlp\n  hidden: [1e15]"),
      /model\.hidden\.0 is 1000000000000000, but must be at most 1048576/,
    ],
    [
      "many layers",
      good.replace("kind: cnn", `kind: mlp\n  hidden: [${"1,".repeat(2000)}1]`),
      /model\.hidden has 2001 entries, but may have at most 1024/,
    ],
    [
      "a long name",
      good.replace("digits", "x".repeat(300)),
      /^jobs\/x\.yaml:1:1: name has 300 characters, but may have at most 100; shorten it$/,
    ],
    [
      "a key that a terminal obeys",
      `${good}"a\\e[2J\\n": 1\n`,
      /^jobs\/x\.yaml:13:1: unknown key "a\\u001b\[2J\\n"; use one of/,
    ],
    [
      "a deep value",
      good.replace("digits", `${"[".repeat(200)}${"]".repeat(200)}`),
      /^jobs\/x\.yaml:1:1: name is \[\[\[\[.*\.\.\., but must be a string/,
    ],
    [
      "a value too deep for the parser",
      `${good}seed: ${"[".repeat(30_000)}`,
      /^jobs\/x\.yaml:\d+:\d+: invalid YAML: its values are nested too deeply/,
    ],
    [
      "a file that is too large",
      `${good}#${"x".repeat(65_536)}`,
      /^jobs\/x\.yaml: has \d+ characters, and a job in YAML at most 32768; .*\(it is not valid JSON\)/,
    ],
    ["a key of __proto__", `${good}__proto__: {polluted: 1}\n`, /unknown key "__proto__"/],
  ])("%s", (_, text, line) => {
    const faults = faultsOf(text);
    expect(faults[0]).toMatch(line);
    expect(faults[0]!.length).toBeLessThan(450);
    expect(faults).toHaveLength(1);
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  });

  test("reports thousands of unknown keys as ten", () => {
    const faults = faultsOf(good + Array.from({ length: 4000 }, (_, i) => `k${i}:\n`).join(""));
    expect(faults).toHaveLength(11);
    expect(faults[0]).toContain('jobs/x.yaml:13:1: unknown key "k0"');
    expect(faults[10]).toBe("jobs/x.yaml: and 3990 more faults; correct these first");
  });

  test("reports thousands of wrong values as ten", () => {
    const faults = faultsOf(good.replace("kind: cnn", `kind: mlp\n  hidden: [${"x,".repeat(1000)}x]`));
    expect(faults).toHaveLength(11);
    expect(faults[10]).toBe("jobs/x.yaml: and 991 more faults; correct these first");
  });

  test.each([
    [`a=${"x".repeat(70_000)}`, "has 70002 characters, at most 32768 are allowed"],
    [`${"a.".repeat(100)}a=1`, "must read key=value"],
    ["seed=*nowhere", "the value is not valid YAML (Unresolved alias"],
  ])("an override: %.40s", (override, line) => {
    const [fault, ...more] = faultsOf(good, [override]);
    expect(fault).toContain(line);
    expect(fault!.length).toBeLessThan(400);
    expect(more).toEqual([]);
  });

  test.runIf(process.platform === "linux")("a job file without an end", () => {
    expect(() => readJob("/dev/zero")).toThrow("/dev/zero: cannot be read (it is no regular file)");
  });

  test("any key set to any value gives a job or faults, few and short", () => {
    const schema = jobJsonSchema() as { properties: Record<string, unknown> };
    const numbers = [8, 64, 0, -1, 0.5, 1e15, 2 ** 53 - 1, 2 ** 53, 1e308, -0];
    const hostile = fc.oneof(
      fc.constantFrom<unknown>(
        ...numbers,
        null,
        "",
        "x".repeat(10_000),
        {},
        [],
        { kind: "mlp", hidden: numbers },
        { kind: "gpt", width: 1e9 },
      ),
      fc.jsonValue(),
    );
    const results = { jobs: 0, refused: 0 };
    fc.assert(
      fc.property(fc.constantFrom(...Object.keys(schema.properties)), hostile, (key, value) => {
        try {
          const job = parseJob(good, "x.yaml", [{ path: [key], value, origin: "test" }]);
          expect(job.ranks).toBeLessThanOrEqual(64);
          results.jobs++;
        } catch (error) {
          if (!(error instanceof ConfigError)) throw error;
          const lines = error.message.split("\n");
          expect(lines.length).toBeLessThanOrEqual(11);
          for (const line of lines) expect(line.length).toBeLessThan(600);
          results.refused++;
        }
      }),
      { numRuns: 300 },
    );
    expect(Math.min(results.jobs, results.refused)).toBeGreaterThan(0);
  });
});

describe("a job longer than people write, as a run saves it", () => {
  const files = Array.from({ length: 1000 }, (_, file) => `/${"f".repeat(300)}/${file}.txt`);
  const long = parseJob(good, "job.json", [
    { path: ["data"], value: { kind: "text", file: files, window: 8 }, origin: "test" },
    { path: ["model"], value: { kind: "gpt", layers: 1, heads: 1, width: 8 }, origin: "test" },
  ]);
  const text = JSON.stringify(long, undefined, 2);

  test("is read again, and overrides hold", () => {
    expect(text.length).toBeGreaterThan(2 ** 18);
    expect(parseJob(text, "job.json")).toEqual(long);
    expect(parseJob(text, "job.json", [parseOverride("batch=8")]).batch).toBe(8);
  });

  test.each([
    ["a fault", text.replace('"batch": 64', '"batch": -1'), "job.json: batch is -1, but must be at least 1; raise it"],
    [
      "too many files",
      JSON.stringify({ ...long, data: { kind: "text", file: Array.from({ length: 100_001 }, () => "f"), window: 8 } }),
      /^job\.json: data\.file is \[.*, but must be a string or a list of at most 100000; change it$/,
    ],
    ["a list", `[${text}]`, /^job\.json: the job is \[.*, but must be a mapping of keys/],
    [
      "a torn text",
      text.slice(0, -10),
      /^job\.json: has \d+ characters, and a job in YAML at most .*not valid JSON\)$/,
    ],
    ["depth", `{"a":${"[".repeat(1e5)}${"]".repeat(1e5)}}`, /nested deeper than 1000 levels\)$/],
    ["a key of __proto__", text.replace("{", '{"__proto__": {"polluted": 1},'), /unknown key "__proto__"/],
  ])("with %s is rejected in one line", (_, altered, line) => {
    const message = ((): string => {
      try {
        return String(parseJob(altered, "job.json"));
      } catch (error) {
        expect(error).toBeInstanceOf(ConfigError);
        return (error as Error).message;
      }
    })();
    expect(message).toMatch(line);
    expect(message).not.toContain("\n");
  });
});

test("the JSON Schema rejects unknown keys and keeps defaults and descriptions", () => {
  const schema = jobJsonSchema() as {
    $schema: string;
    additionalProperties: boolean;
    required: string[];
    properties: Record<string, { default?: unknown; description?: string }>;
  };
  expect(schema.$schema).toBe("http://json-schema.org/draft-07/schema#");
  expect(schema.additionalProperties).toBe(false);
  expect(schema.required).toEqual(["name", "batch", "data", "model", "optimizer", "learningRate"]);
  expect(schema.properties["ranks"]).toMatchObject({
    default: 1,
    description: expect.stringContaining("ranks") as string,
  });
});
