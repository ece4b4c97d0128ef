import { availableParallelism } from "node:os";
import { defineConfig, type ViteUserConfig } from "vitest/config";
import { LongestFirst } from "./tooling/longest-first.ts";

const config: ViteUserConfig = defineConfig({
  test: {
    include: [
      "packages/*/{src,test}/**/*.test.ts",
      "apps/*/{src,test}/**/*.test.ts",
      "tooling/**/*.test.ts",
      "benchmarks/src/**/*.test.ts",
      "examples/*/{src,test}/**/*.test.ts",
    ],
    pool: "forks",
    // On processors with protection keys, V8 now and then loses track of a code page when worker threads come and go, and aborts
    // ("Check failed: jit_page.has_value()", nodejs/node#64500). Without the keys it does not.
    execArgv: ["--no-memory-protection-keys"],
    // Mesa's software driver: tests run each shader once or twice on little data, so compiling without optimisation is a quarter of the time.
    env: { GALLIVM_PERF: process.env["GALLIVM_PERF"] ?? "nopt" },
    // Software adapters compile shaders for minutes where their cache is cold, on one core per process.
    maxWorkers: Math.max(2, availableParallelism() - 1),
    sequence: { sequencer: LongestFirst },
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});

export default config;
