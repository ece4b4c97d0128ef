import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type HardwareFile, hardwareNamed } from "@skein/cost-model/hardware";
import { formatHardwareFile, parseHardwareFile } from "@skein/cost-model/files";
import { parseReport, secondsOf, worldSteps } from "@skein/report";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openJob } from "skein-train/profiling";
import { commandNames } from "../src/own-command.ts";
import { attribute } from "../src/trace/attribution.ts";
import { type CommandResult, inProcess as runInProcess } from "./in-process.ts";

/** Command that starts the program: the built package if this test run has built it, otherwise the source. */
const program: readonly string[] =
  process.env["SKEIN_PROGRAM"] === "built"
    ? ["--conditions=skein-built", fileURLToPath(new URL("../dist/main.js", import.meta.url))]
    : [fileURLToPath(new URL("../src/main.ts", import.meta.url))];

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "skein-profile-test-"));
  writeFileSync(
    join(folder, "job.yaml"),
    `name: tiny
ranks: 2
backend: cpu
batch: 32
steps: 30
data: { kind: mnist, trainSamples: 640, testSamples: 203 }
model: { kind: mlp, hidden: [16] }
optimizer: { kind: adamw }
learningRate: { peak: 0.005 }
buckets: { kind: per-tensor }
`,
  );
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const skeinProfile = (...args: string[]): Promise<CommandResult> =>
  new Promise((resolve) => {
    const child = spawn(process.execPath, ["--no-memory-protection-keys", ...program, ...args], {
      cwd: folder,
      env: { ...process.env, NO_COLOR: "1" },
    });
    const written = { stdout: "", stderr: "" };
    for (const name of ["stdout", "stderr"] as const)
      child[name].setEncoding("utf8").on("data", (text: string) => void (written[name] += text));
    child.once("close", (code) => resolve({ code, ...written }));
  });

/** Runs a command in this process; for commands that start no ranks. */
const inProcess = (...args: string[]): Promise<CommandResult> =>
  runInProcess(...args.map((word) => word.replace("HERE", folder)));

/** Expects a one-line error, exit code 2, and no output. */
const expectRefused = ({ code, stdout, stderr }: CommandResult, words: RegExp): void => {
  expect(stderr).toMatch(words);
  expect([code, stdout, stderr.match(/^\s+at /m)]).toEqual([2, "", null]);
};

describe("run", () => {
  let ended: CommandResult;
  const report = (): ReturnType<typeof parseReport> =>
    parseReport(readFileSync(join(folder, "profiles/tiny/1/report.json"), "utf8"), "report.json");
  beforeAll(async () => {
    ended = await skeinProfile("run", "job.yaml", "--steps", "6", "--warm-up", "2");
  });

  test("prints a report for 80 columns, and the location of the files", () => {
    expect([ended.code, ended.stderr.match(/^\s+at /m)]).toEqual([0, null]);
    expect(ended.stdout).toMatch(/^tiny:/);
    expect(ended.stdout).toContain("Slowest operators");
    expect(Math.max(...ended.stdout.split("\n").map((line) => line.length))).toBeLessThanOrEqual(80);
    expect(ended.stderr).toContain("open profiles/tiny/1/report.html in a browser");
  });

  test("writes report, page, trace and tables, and no run of the trainer", () => {
    expect(readdirSync(join(folder, "profiles/tiny/1")).sort()).toEqual([
      "collectives.csv",
      "operators.csv",
      "report.html",
      "report.json",
      "trace.json",
    ]);
    expect(existsSync(join(folder, "runs"))).toBe(false);
    const { traceEvents } = JSON.parse(readFileSync(join(folder, "profiles/tiny/1/trace.json"), "utf8")) as {
      traceEvents: { name: string }[];
    };
    expect(traceEvents.filter(({ name }) => name === "step 8")).toHaveLength(2); // two ranks
  });

  test("shares of operators and of time outside operators add up to the step", () => {
    const { operators, outside, timeline } = report();
    expect([...operators, ...outside].reduce((sum, { share }) => sum + share, 0)).toBeCloseTo(1, 9);
    // Row times add the durations of all spans with a name, and shares count each moment once. The results agree if no
    // two spans of a thread overlap.
    for (const { spans } of timeline) {
      const whole = spans.find(({ track }) => track === "steps")!;
      const summed = spans
        .filter(({ track }) => track !== "steps" && track !== "collectives")
        .reduce((sum, span) => sum + secondsOf(span), attribute({ whole, spans }).between);
      expect(Math.abs(summed / secondsOf(whole) - 1)).toBeLessThan(0.05);
    }
    const percents = ended.stdout
      .split("\n")
      .flatMap(
        (line) => /^(?:gaps|exposed|batch wait|host work|\d+ others|step) +[\d.]+ .*?([\d.]+)$/.exec(line)?.[1] ?? [],
      );
    expect(Number(percents.at(-1))).toBe(100);
  });

  test("has the work of every operator, and the collectives of every bucket", () => {
    const { operators, collectives, steps, warmUpSteps, ranks } = report();
    expect([steps, warmUpSteps, ranks]).toEqual([6, 2, 2]);
    const product = operators.filter(({ operator }) => operator === "matmul");
    // The job has two layers and 16 samples per rank. The backward pass does not compute the gradient of the first
    // layer's inputs.
    const [inputs, hidden, classes] = [784, 16, 10];
    const flops = 2 * 16 * (2 * inputs * hidden + 3 * hidden * classes);
    expect(product.reduce((sum, row) => sum + row.flops!, 0)).toBe(flops);
    expect(collectives.map(({ name }) => name).sort()).toEqual([
      "all-reduce exchange-0",
      "all-reduce exchange-1",
      "all-reduce exchange-2",
      "all-reduce exchange-3",
      "all-reduce mean-loss",
    ]);
    expect(operators.every(({ predictedSeconds = 0 }) => predictedSeconds > 0)).toBe(true);
  });
});

describe("report", () => {
  const trace = (): string => join(folder, "profiles/tiny/1/trace.json");
  const reportOf = async (...args: string[]): Promise<ReturnType<typeof parseReport>> => {
    const { code, stdout } = await inProcess("report", ...args, "--json");
    expect(code).toBe(0);
    return parseReport(stdout, "standard output");
  };

  test("of the trace of a run equals that of the run, except for data that a trace lacks", async () => {
    const ran = parseReport(readFileSync(join(folder, "profiles/tiny/1/report.json"), "utf8"), "report.json");
    const read = await reportOf(trace(), "--warm-up", "2", "--output", "HERE/read");
    expect(read).toMatchObject({ job: "tiny", backend: "cpu", ranks: 2, steps: 6, warmUpSteps: 2, samplesPerStep: 32 });
    expect([read.device, read.memory, read.operators[0]!.flops]).toEqual([undefined, undefined, undefined]);
    const calls = ({ operators }: typeof ran): string[] =>
      operators.map(({ operator, scope, phase, calls: n }) => `${operator} ${scope} ${phase} ${n}`).toSorted();
    expect(calls(read)).toEqual(calls(ran));
    const exposed = ({ collectives }: typeof ran): Map<string, number> =>
      new Map(collectives.map(({ name, exposedSeconds }) => [name, exposedSeconds.median]));
    expect([...exposed(read).keys()].toSorted()).toEqual([...exposed(ran).keys()].toSorted());
    // Traces contain whole nanoseconds for the start and the end of each wait.
    for (const [name, seconds] of exposed(ran)) expect(Math.abs(exposed(read).get(name)! - seconds)).toBeLessThan(1e-8);
    // The first report subtracts the recording cost, which is unknown for a trace without a job.
    expect(read.step.median).toBeGreaterThan(ran.step.median);
    expect(read.step.median / ran.step.median).toBeLessThan(1.2);
    const page = readFileSync(join(folder, "read/report.html"), "utf8");
    expect([page.match(/No roofline/)?.length, page.match(/No memory profile/)?.length]).toEqual([1, 1]);
    expect(readFileSync(join(folder, "read/trace.json"), "utf8")).toBe(readFileSync(trace(), "utf8"));
  });

  test("has flops, roofline and memory with the job", async () => {
    const ran = parseReport(readFileSync(join(folder, "profiles/tiny/1/report.json"), "utf8"), "report.json");
    const read = await reportOf(trace(), "--warm-up", "2", "--job", "HERE/job.yaml", "--output", "HERE/known");
    const flops = ({ operators }: typeof ran): string[] =>
      operators.map((row) => `${row.operator} ${row.scope} ${row.phase} ${row.flops}`).toSorted();
    expect([flops(read), read.memory]).toEqual([flops(ran), ran.memory]);
  });

  test("of a truncated trace covers the complete steps, and has a note", async () => {
    const whole = readFileSync(trace(), "utf8");
    writeFileSync(join(folder, "cut.json"), whole.slice(0, whole.indexOf('"step 7"') + 5));
    const { code, stderr } = await inProcess("report", "HERE/cut.json", "--warm-up", "2", "--output", "HERE/short");
    expect(code).toBe(0);
    expect(stderr).toMatch(
      /cut\.json was cut off: \d+ events were read, up to [\d.]+ s; \d steps are complete[^\n]*\n/,
    );
    const { steps } = parseReport(readFileSync(join(folder, "short/report.json"), "utf8"), "report.json");
    expect(steps).toBeGreaterThanOrEqual(3);
    writeFileSync(join(folder, "cut.json"), whole.slice(0, whole.indexOf('"step 2"')));
    expectRefused(
      await inProcess("report", "HERE/cut.json", "--warm-up", "1", "--output", "HERE/none"),
      /no step is left after the first 1|was cut off before/,
    );
    expect(existsSync(join(folder, "none"))).toBe(false);
  });

  test.each([
    ["another job", ["--job", "HERE/job.yaml", "--ranks", "4"], /has 2 ranks, and --job tiny has 4; .* --ranks 2/],
    [
      "a job with another model",
      ["--job", "HERE/job.yaml", "--set", "model={kind: cnn}", "--set", "compression={kind: top-k, density: 0.1}"],
      /spends \d+ % of its computing on operators that --job tiny does not have, such as matmul dense-0/,
    ],
    [
      "prices without a job",
      ["--hardware", "laptop-cpu"],
      /--hardware laptop-cpu describes the job of the trace, and no job is given; add --job/,
    ],
  ] as const)("%s is told", async (_, args, words) => {
    expect((await inProcess("report", trace(), "--warm-up", "2", "--output", "HERE/other", ...args)).stderr).toMatch(
      words,
    );
  });
});

test("the program that rewrites hints knows each command by name", async () => {
  const { stdout } = await inProcess("--help");
  const listed = [...stdout.matchAll(/^ {2}([a-z]+) [[<]/gm)].map(([, name]) => name!);
  expect(listed.filter((name) => name !== "help").toSorted()).toEqual(commandNames.toSorted());
});

test("with `detailEvery`, one of several steps is recorded in detail, and the others as a single span", async () => {
  const job = await openJob(join(folder, "job.yaml"), { ranks: "1" });
  const steps = worldSteps((await job.run(7, { detailEvery: 3 })).ranks);
  expect(steps.map(([rank]) => [rank!.number, rank!.spans.length > 0])).toEqual(
    [1, 2, 3, 4, 5, 6, 7].map((step) => [step, step % 3 === 1]),
  );
  expect(steps.every(([rank]) => secondsOf(rank!.whole) > 0)).toBe(true);
});

test("calibrates a machine with a job, and predicts the job on it", { tags: "full" }, async () => {
  const calibrated = await skeinProfile("calibrate", "job.yaml", "--steps", "6", "--output", "here.json");
  expect([calibrated.code, calibrated.stderr.match(/^\s+at /m)]).toEqual([0, null]);
  const hardware = parseHardwareFile(readFileSync(join(folder, "here.json"), "utf8"), "here.json");
  expect(hardware.topology).toMatchObject({ ranks: 2, ranksPerHost: 2 });
  expect(hardware.device.efficiencies.some(({ operator }) => operator === "matmul")).toBe(true);
  const predicted = await skeinProfile("predict", "job.yaml", "--hardware", "here.json", "--json");
  expect(predicted.code).toBe(0);
  const { stepSeconds } = JSON.parse(predicted.stdout) as { stepSeconds: number };
  expect(stepSeconds).toBeGreaterThan(0);
  const twice = await skeinProfile(
    "predict",
    "job.yaml",
    "--hardware",
    "here.json",
    "--json",
    "--ranks",
    "4",
    "--set",
    "batch=64",
  );
  expect((JSON.parse(twice.stdout) as { stepSeconds: number }).stepSeconds).toBeGreaterThan(stepSeconds);
});

test("a prediction for more ranks than were measured shows the extrapolation without a model, and a warning about its file", async () => {
  const laptop = hardwareNamed("laptop-cpu");
  const { topology } = laptop;
  const run = { overlaps: true, predictedSeconds: 0.077, measuredSeconds: 0.1 };
  const name = (await openJob(join(folder, "job.yaml"), {})).facts.name;
  const calibrated: HardwareFile = {
    ...laptop,
    topology: { ...topology, ranks: 2, ranksPerHost: 2 },
    calibration: { links: laptop.links.source, runs: [{ name, ...run }] },
  };
  writeFileSync(join(folder, "calibrated.json"), formatHardwareFile(calibrated));
  const more = ["--ranks", "4", "--set", "batch=64", "--hardware", "HERE/calibrated.json"];
  const predict = (...args: string[]) => inProcess("predict", "HERE/job.yaml", ...args);
  const byFile = await predict(...more);
  const given = await predict(...more, "--measured", "2=0.1", "--measured", "1=0.05");
  const same = await predict("--hardware", "HERE/calibrated.json");
  const json = await predict(...more, "--json");
  expect(byFile.stderr).toBe("");
  expect(byFile.stdout).toContain(
    "without a model 100 ms per step, as on 2 ranks: the baseline that the model must beat",
  );
  expect(byFile.stdout).toMatch(/warning: 1 of the 1 jobs .* 1 of them with overlap\n {4}23 % too fast/);
  expect(given.stdout).toContain("without a model 200 ms per step, repeating the last doubling of 1, 2 ranks");
  expect(same.stdout).not.toContain("without a model");
  expect(JSON.parse(json.stdout)).toMatchObject({ extrapolatedStepSeconds: 0.1 });
});

test("scores of configurations equal their predictions, fastest first", async () => {
  const on = ["--hardware", "laptop-cpu", "--ranks", "4", "--transport", "tcp", "--set", "batch=64", "--json"];
  const { code, stdout, stderr } = await inProcess("plan", "HERE/job.yaml", ...on);
  expect([code, stderr]).toEqual([0, ""]);
  const { scored, leftOut } = JSON.parse(stdout) as {
    scored: { settings: Record<string, { kind?: string }>; seconds: number; sentBytes: number }[];
    leftOut: string[];
  };
  expect(scored.length).toBeGreaterThan(60);
  expect(scored.map(({ seconds }) => seconds)).toEqual(scored.map(({ seconds }) => seconds).toSorted((a, b) => a - b));
  expect(leftOut.every((line) => line.includes("applies momentum"))).toBe(true);
  const planned = scored.findIndex(({ settings: { buckets } }) => buckets?.kind === "mg-wfbp");
  const halved = scored.findIndex(({ settings: { overlap } }) => (overlap as unknown) === "dear");
  for (const at of [0, planned, halved, Math.floor(scored.length / 2), scored.length - 1]) {
    const { settings, seconds } = scored[at]!;
    const sets = Object.entries(settings).flatMap(([key, value]) => ["--set", `${key}=${JSON.stringify(value)}`]);
    const predicted = await inProcess("predict", "HERE/job.yaml", ...on, ...sets);
    const { stepSeconds } = JSON.parse(predicted.stdout) as { stepSeconds: number };
    expect(Math.abs(stepSeconds / seconds - 1), JSON.stringify(settings)).toBeLessThan(0.05);
  }
  const lossless = await inProcess("plan", "HERE/job.yaml", ...on, "--lossless", "--apply", "HERE/planned.yaml");
  const kinds = (
    JSON.parse(lossless.stdout) as { scored: { settings: Record<string, { kind: string }> }[] }
  ).scored.map(({ settings }) => settings["compression"]!.kind);
  expect(new Set(kinds)).toEqual(new Set(["identity"]));
  const written = readFileSync(join(folder, "planned.yaml"), "utf8");
  expect(written).toMatch(/^# [\d.]+ [mµ]s per step, simulated on laptop-cpu; [\d.]+ [mµ]s before\n/);
  expect(written).toContain("data: { kind: mnist, trainSamples: 640, testSamples: 203 }"); // data is unchanged
  const again = await inProcess("predict", "HERE/planned.yaml", ...on);
  expect(JSON.parse(again.stdout)).toMatchObject({ stepSeconds: expect.any(Number) as number });
  expectRefused(
    await inProcess("plan", "HERE/job.yaml", ...on, "--apply", "HERE/planned.yaml"),
    /planned\.yaml: the file exists/,
  );
  expectRefused(
    await inProcess("plan", "HERE/job.yaml", ...on, "--apply", "elsewhere.yaml"),
    /elsewhere\.yaml: paths in a job are relative to its file/,
  );
});

test("several numbers of ranks are compared, and impossible ones are left out with the reason", async () => {
  const { code, stdout } = await inProcess(
    "plan",
    "HERE/job.yaml",
    "--hardware",
    "rtx-3090",
    "--ranks",
    "1..512",
    "--lossless",
    "--json",
  );
  expect(code).toBe(0);
  const { worlds, leftOut, best, algorithms } = JSON.parse(stdout) as {
    worlds: {
      ranks: number;
      efficiency: number;
      epochSeconds: number;
      resizing: Record<string, unknown>;
      scored: { settings: Record<string, unknown>; seconds: number }[];
    }[];
    leftOut: string[];
    best: { ranks: number };
    algorithms: { chosen: string; candidates: { algorithm: string; seconds: number }[] }[];
  };
  expect(worlds.length).toBeGreaterThan(0);
  expect(worlds.every(({ efficiency }) => efficiency > 0 && efficiency <= 1 + 1e-9)).toBe(true);
  const least = Math.min(...worlds.map(({ epochSeconds }) => epochSeconds));
  expect(worlds.find(({ epochSeconds }) => epochSeconds === least)!.ranks).toBe(best.ranks);
  expect(leftOut.filter((line) => /^1 rank: exchanges nothing|^\d+ ranks: rtx-3090 has \d+$/.test(line)).length).toBe(
    10 - worlds.length,
  );
  // Complete steps were traced only for the first number of ranks.
  const { resizing, scored } = worlds.at(-1)!;
  const sets = Object.entries({ ...resizing, ...scored[0]!.settings }).flatMap(([key, value]) => [
    "--set",
    `${key}=${JSON.stringify(value)}`,
  ]);
  const predicted = await inProcess("predict", "HERE/job.yaml", "--hardware", "rtx-3090", "--json", ...sets);
  expect((JSON.parse(predicted.stdout) as { stepSeconds: number }).stepSeconds / scored[0]!.seconds).toBeCloseTo(1, 3);
  expect(algorithms.every(({ chosen, candidates }) => candidates.some(({ algorithm }) => algorithm === chosen))).toBe(
    true,
  );
});

test("rejects a plan for one rank, which exchanges nothing", async () => {
  expectRefused(
    await inProcess("plan", "HERE/job.yaml", "--hardware", "laptop-cpu", "--ranks", "1"),
    /a job of 1 rank exchanges nothing/,
  );
});

test("estimates a large model", async () => {
  const { code, stdout } = await inProcess("model", "llama-2-7b", "--hardware", "a800", "--zero", "2");
  expect(code).toBe(0);
  expect(stdout).toContain("layer × 32");
  expect(Math.max(...stdout.split("\n").map((line) => line.length))).toBeLessThan(200); // assumptions may be long
});

test.each([
  ["a job that is not there", ["run", "HERE/nope.yaml"], /nope\.yaml: cannot be read/],
  ["no steps", ["run", "HERE/job.yaml", "--steps", "0"], /--steps 0: must be a whole number from 1/],
  [
    "a warm-up that is no number",
    ["run", "HERE/job.yaml", "--warm-up", "some"],
    /--warm-up some: must be a whole number from 0/,
  ],
  ["a folder in use", ["run", "HERE/job.yaml", "--output", "HERE"], /--output .*: the folder is not empty/],
  [
    "a folder where none can be",
    ["report", "HERE/profiles/tiny/1/trace.json", "--output", "/proc/none"],
    /the report cannot be written/,
  ],
  [
    "hardware that is not there",
    ["predict", "HERE/job.yaml", "--hardware", "HERE/none.json"],
    /none\.json cannot be read/,
  ],
  [
    "hardware that nobody ships",
    ["predict", "HERE/job.yaml", "--hardware", "abacus"],
    /no hardware is named "abacus"; use one of laptop-cpu/,
  ],
  [
    "a measured step without seconds",
    ["predict", "HERE/job.yaml", "--hardware", "laptop-cpu", "--measured", "4"],
    /--measured 4 is not RANKS=SECONDS/,
  ],
  ["a job file as hardware", ["predict", "HERE/job.yaml", "--hardware", "HERE/job.yaml"], /job\.yaml is not JSON/],
  ["links of threads", ["links", "HERE/job.yaml"], /transport: threads has no links/],
  ["links that go nowhere", ["links", "HERE/job.yaml", "--hardware", "laptop-cpu"], /add --output <file>/],
  [
    "links of no hardware",
    ["links", "HERE/job.yaml", "--output", "HERE/x.json"],
    /--output .* needs the hardware file whose links are replaced/,
  ],
  [
    "links in no folder",
    ["links", "HERE/job.yaml", "--hardware", "laptop-cpu", "--output", "HERE/no/x.json"],
    /its folder does not exist/,
  ],
  ["a report as a trace", ["report", "HERE/profiles/tiny/1/report.json"], /is JSON, but no trace/],
  ["a trace that is not there", ["report", "HERE/nope.json"], /nope\.json cannot be read/],
  [
    "a device as a report",
    ["compare", "/dev/zero", "/dev/zero"],
    /\/dev\/zero cannot be read \(it is no regular file\)/,
  ],
  [
    "a device as hardware",
    ["predict", "HERE/job.yaml", "--hardware", "/dev/zero"],
    /\/dev\/zero cannot be read \(it is no regular file\)/,
  ],
  ["an unknown model", ["model", "llama-9", "--hardware", "a800"], /llama-9/],
] as const)("%s is refused in one line", async (_, args, words) => {
  expectRefused(await inProcess(...args), words);
});
