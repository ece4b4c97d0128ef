import { availableParallelism } from "node:os";
import { join } from "node:path";
import { configDefaults, defineConfig, type ViteUserConfig } from "vitest/config";
import { JournalReporter } from "./tooling/journal-reporter.ts";
import { LongestFirst } from "./tooling/longest-first.ts";
import { asBuilt, compiledOnce } from "./tooling/quick-starts.ts";
import { shadersThatRunOnce } from "./tooling/shaders-that-run-once.ts";

const { SKEIN_TEST_JOURNAL: journal, SKEIN_TESTS: extent, SKEIN_PROGRAM: program } = process.env;

// What takes long and finds little that the rest does not: `pnpm test:full`, before a release.
const left = extent === "full" ? [] : ["**/*.full.test.ts"];

const exclude = [...configDefaults.exclude, ...left];

// Single tests of that kind, `test("…", { tags: "full" }, …)`, are skipped by default.
const tags = [{ name: "full", description: "run before a release", skip: extent !== "full" }];

// Tests that leave nothing behind in their process: no thread, device, socket, timer or environment. They share it, and
// with it the modules that are read once, which halves their time.
const quiet = [
  "packages/{cost-model,data,measuring,models,pretrained,tensor-core,testing}/{src,test}/**/*.test.ts",
  "packages/{compressors,moe-parallel,onnx,report,second-order}/src/**/*.test.ts",
  "packages/{compressors,moe-parallel,second-order}/test/!(on-threads|on-backends).test.ts",
  "packages/cpu-kernels/{src,src/ops}/*.test.ts",
  "packages/cpu-kernels/test/!(blas|threads.laws).test.ts",
  "packages/collectives/src/*.test.ts",
  "packages/collectives/src/{failure-detection,rendezvous,security,transport,wire}/!(renewable-identity|wait-notice).test.ts",
  "packages/collectives/src/network/{busy-poll,emulated-links,frame-codec,receive-queue,send-queue}.test.ts",
  "packages/gpu-kernels/src/{lower,resolve-bindings,shader,wgsl}.test.ts",
  "packages/gpu-kernels/src/autotune/*.test.ts",
  "apps/profiler/src/**/*.test.ts",
  "apps/trainer/src/{command-line,dry-run,find-batch,generate,import-model}/*.test.ts",
  "apps/trainer/src/{log,modules,output-folder,planning,preparation}/*.test.ts",
  "apps/trainer/src/{pretrained,report}/*.test.ts",
  "apps/trainer/src/{backend,members,processes,rank}/!(gpu-devices|rank-discovery|stop-signal).test.ts",
  "packages/checkpoints/src/!(part-writer).test.ts",
  "packages/cli/src/{files,processes}/*.test.ts",
  "packages/{job,step}/src/**/*.test.ts",
  "packages/run-files/src/files/*.test.ts",
  "packages/run-files/src/readers/metric-tail.test.ts",
  "packages/watch/src/{page/page-parts,run-facts}.test.ts",
  "benchmarks/src/**/*.test.ts",
];
const others = [
  "packages/*/{src,test}/**/*.test.ts",
  "apps/*/{src,test}/**/*.test.ts",
  "tooling/**/*.test.ts",
  "examples/*/{src,test}/**/*.test.ts",
];

const config: ViteUserConfig = defineConfig({
  test: {
    tags,
    setupFiles: ["tooling/tags-skip-too.ts", "packages/testing/src/law-seeds.ts"].map((file) =>
      join(import.meta.dirname, file),
    ),
    // How long something takes on a busy machine is no business of a test: only a test that hangs shall end by this.
    expect: { poll: { timeout: 60_000 } },
    projects: [
      { extends: true, test: { name: "alone", include: others, exclude: [...exclude, ...quiet] } },
      { extends: true, test: { name: "together", include: quiet, exclude, isolate: false } },
    ],
    reporters: journal === undefined ? ["default"] : ["default", new JournalReporter(journal)],
    pool: "forks",
    // On processors with protection keys, V8 now and then loses track of a code page when worker threads come and go,
    // and aborts ("Check failed: jit_page.has_value()", nodejs/node#64500). Without the keys it does not.
    //
    // Threads that tests start read other packages as they ship, where the whole run of tests has built them: a rank of
    // a run begins in half of the time.
    execArgv: ["--no-memory-protection-keys", ...(program === "built" ? [asBuilt] : [])],
    env: { ...shadersThatRunOnce, ...compiledOnce },
    // Software adapters compile shaders for minutes where their cache is cold, on one core per process. One worker more
    // than two cores gains nothing: each test takes half as long again, and those of processes come too late.
    maxWorkers: Math.max(2, availableParallelism() - 1),
    sequence: { sequencer: LongestFirst },
    // What a busy machine held up until there was nothing left to disturb has tested nothing (`disturbed` in
    // apps/trainer/test/cli.ts).
    retry: { count: 3, condition: /^too late: / },
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});

export default config;
