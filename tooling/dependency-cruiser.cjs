const { builtinModules } = require("node:module");

/**
 * Allowed imports of each package, documented in the table in README.md. A package that is missing here fails the
 * check.
 */
const packageGraph = {
  "tensor-core": [],
  "cpu-kernels": ["tensor-core"],
  blas: ["tensor-core", "cpu-kernels", "native-addon", "measuring"],
  "gpu-kernels": ["tensor-core", "native-addon"],
  collectives: ["tensor-core"],
  mpi: ["tensor-core", "collectives", "native-addon"],
  compressors: ["tensor-core"],
  "second-order": ["tensor-core"],
  "moe-parallel": ["tensor-core"],
  "cost-model": ["tensor-core", "collectives", "measuring"],
  models: ["tensor-core"],
  data: ["tensor-core"],
  pretrained: ["tensor-core", "models"],
  onnx: ["tensor-core"],
  testing: ["tensor-core"],
  measuring: [],
  "published-measurements": [],
  "native-addon": [],
  browser: [],
  report: ["tensor-core", "measuring"],
  cli: ["tensor-core", "collectives", "native-addon"],
  "run-files": ["tensor-core", "collectives", "data", "moe-parallel", "report", "cli"],
  checkpoints: ["tensor-core", "collectives", "data", "cli", "run-files"],
  job: ["tensor-core", "collectives", "data", "models", "moe-parallel", "second-order", "cli"],
  launch: ["tensor-core", "collectives", "cli"],
  step: [
    "tensor-core",
    "collectives",
    "compressors",
    "cost-model",
    "data",
    "models",
    "moe-parallel",
    "second-order",
    "cli",
    "run-files",
    "checkpoints",
    "job",
  ],
  watch: ["tensor-core", "collectives", "data", "report", "cli", "run-files", "checkpoints"],
};

/**
 * Additional imports allowed in tests and benchmarks, besides `testing` and `measuring`: the backend on which they run.
 */
const testGraph = {
  "gpu-kernels": ["cpu-kernels", "browser"],
  collectives: ["cpu-kernels"],
  compressors: ["cpu-kernels", "gpu-kernels", "collectives"],
  "moe-parallel": ["cpu-kernels", "gpu-kernels", "collectives"],
  "second-order": ["cpu-kernels", "gpu-kernels", "collectives"],
  "cost-model": ["published-measurements"],
  models: ["cpu-kernels"],
  pretrained: ["cpu-kernels"],
  onnx: ["models"],
  report: ["browser"],
  watch: ["browser"],
};

const anyOf = (names) => `(${names.join("|")})`;
const testOrBench = "(\\.test\\.ts$|^packages/[^/]+/(test|bench)/)";

const layers = Object.entries(packageGraph).flatMap(([name, allowed]) => {
  // tensor-core cannot import testing, because testing imports tensor-core.
  const allowedInTests = [
    ...allowed,
    "measuring",
    ...(name === "tensor-core" || name === "measuring" ? [] : ["testing"]),
    ...(testGraph[name] ?? []),
  ];
  return [
    {
      name: `layers:${name}`,
      severity: "error",
      comment: `packages/${name} may import ${allowed.length === 0 ? "no other package of ours" : allowed.join(", ")}`,
      from: { path: `^packages/${name}/`, pathNot: testOrBench },
      to: {
        path: "^(packages|apps|benchmarks|examples|tooling)/",
        pathNot: [`^packages/${anyOf([name, ...allowed])}/`, "^tooling/tsup\\.ts$"],
      },
    },
    {
      name: `layers:${name}:tests`,
      severity: "error",
      comment: `tests and benches of packages/${name} may import ${allowedInTests.join(", ")}`,
      from: { path: `^packages/${name}/(.*\\.test\\.ts$|test/|bench/)` },
      to: { path: "^(packages|apps|benchmarks|examples)/", pathNot: `^packages/${anyOf([name, ...allowedInTests])}/` },
    },
  ];
});

/** @type {import("dependency-cruiser").IConfiguration} */
module.exports = {
  forbidden: [
    ...layers,
    {
      name: "unknown-package",
      severity: "error",
      comment: "every package must have a row in packageGraph of this file",
      from: { path: "^packages/", pathNot: `^packages/${anyOf(Object.keys(packageGraph))}/` },
      to: {},
    },
    {
      name: "no-cycle",
      severity: "error",
      comment: "imports must be acyclic, including type-only imports",
      from: {},
      to: { circular: true },
    },
    {
      name: "one-door",
      severity: "error",
      comment: "only files listed in the exports of a package may be imported",
      from: { path: "^(?:packages|apps)/([^/]+)/|^(?:benchmarks|examples|tooling)/" },
      to: {
        path: "^packages/",
        pathNot: [
          "^packages/$1/",
          "^packages/[^/]+/src/(index|node)\\.ts$",
          "^packages/[^/]+/package\\.json$",
          "^packages/cli/src/(parse-yaml|start)\\.ts$",
          "^packages/collectives/src/(algorithms|files|transport)\\.ts$",
          "^packages/tensor-core/src/backend\\.ts$",
          "^packages/cost-model/src/(calibration|files|hardware|large-models|planners|pricing|simulation)\\.ts$",
          "^packages/launch/src/certificates/issue-certificate\\.ts$",
          "^packages/moe-parallel/src/(placement|routing)\\.ts$",
          "^packages/watch/src/bundle-page\\.ts$",
        ],
      },
    },
    {
      name: "one-door-by-name",
      severity: "error",
      comment: "another package must be imported by its name, not by a path",
      from: { path: "^(?:packages|apps)/([^/]+)/|^(?:benchmarks|examples)/" },
      to: { path: "^packages/", pathNot: "^packages/$1/", dependencyTypes: ["local"] },
    },
    {
      name: "apps-are-the-top",
      severity: "error",
      comment: "only examples, which are user programs, may import an app",
      from: { path: "^(packages|benchmarks|tooling)/" },
      to: { path: "^apps/" },
    },
    {
      name: "core-runs-in-a-browser",
      severity: "error",
      comment:
        "nothing reachable from an entry module may import from Node; move such code to a separate entry, src/node.ts",
      from: {
        path: "^packages/[^/]+/src/(index|algorithms|backend|calibration|hardware|large-models|placement|planners|pricing|routing|simulation|transport)\\.ts$",
        pathNot: "^packages/(testing|browser)/",
      },
      to: { path: `^(node:)?${anyOf(builtinModules)}$`, reachable: true },
    },
    {
      name: "resolvable",
      severity: "error",
      comment: "every import must be resolvable",
      from: {},
      to: { couldNotResolve: true },
    },
  ],
  options: {
    doNotFollow: { path: "node_modules" },
    // Excludes files that tsup writes next to its configuration during a build, because tsup may delete these files
    // before they are read.
    exclude: { path: ["/dist/", "/src/generated/", "tsup\\.config\\.bundled_"] },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: "tsconfig.json" },
    enhancedResolveOptions: {
      exportsFields: ["exports"],
      conditionNames: ["import", "types", "node", "default"],
      extensions: [".ts", ".js", ".cjs", ".mjs", ".json", ".d.ts"],
    },
  },
};
