import { type BlasSurvey, noLocksAdvice } from "@skein/blas/node";
import { asTyped } from "@skein/cli/node";
import { type PackageFinding, surveyDataPackages } from "@skein/data/node";
import { type DeviceFacts, optionalFeatures, type OptionalFeature } from "@skein/gpu-kernels";
import { formatBytes } from "@skein/run-files/node";
import { chooseBackend, type BackendChoice, type Hardware } from "../preparation/choose-backend.ts";
import type { BackendRates } from "../backend/backend-rates.ts";
import type { Prepared } from "../preparation/prepared.ts";
import { memoryLine, type StepMemory, stepMemoryOf } from "../preparation/step-memory.ts";

/** Findings of `skein-train doctor`. */
export interface Diagnosis {
  readonly node: string;
  readonly hardware: Hardware;
  readonly blas: BlasSurvey;
  readonly data: readonly PackageFinding[];
  readonly job?: {
    readonly name: string;
    readonly asked: string;
    readonly choice: BackendChoice;
    readonly memory: StepMemory;
  };
}

export const diagnose = async (hardware: Hardware, blas: BlasSurvey, prepared?: Prepared): Promise<Diagnosis> => ({
  node: process.version,
  hardware,
  blas,
  data: surveyDataPackages(import.meta.url),
  ...(prepared && {
    job: await diagnoseJob(prepared, hardware),
  }),
});

const diagnoseJob = async (prepared: Prepared, hardware: Hardware): Promise<NonNullable<Diagnosis["job"]>> => {
  const { name, backend: asked } = prepared.job;
  const choice = chooseBackend(prepared, hardware);
  const onGpu = (asked === "auto" ? choice.backend : asked) === "webgpu";
  const device = onGpu && "facts" in hardware.webgpu ? hardware.webgpu.facts : undefined;
  return { name, asked, choice, memory: await stepMemoryOf(prepared, device) };
};

const isEnabled = (facts: DeviceFacts, feature: OptionalFeature): boolean =>
  ({
    "shader-f16": facts.f16,
    subgroups: facts.subgroups,
    "timestamp-query": facts.timestamps,
    "chromium-experimental-subgroup-matrix": facts.subgroupMatrices.length > 0,
  })[feature];

/** Behavior of a job if an optional GPU feature is missing, as text for the user, by feature. */
const fallbacks: { readonly [F in OptionalFeature]: string } = {
  "shader-f16": "mixed precision computes in f32 and stores f16",
  subgroups: "reductions go through workgroup memory",
  "timestamp-query": "profiles show whole steps only",
  "chromium-experimental-subgroup-matrix": "products use plain multiply-adds",
};

export const ratesLine = ({ flopsPerSecond, bytesPerSecond, kernelSeconds }: BackendRates): string =>
  `products ${(flopsPerSecond / 1e9).toPrecision(3)} GFLOP/s, memory ${(bytesPerSecond / 1e9).toPrecision(3)} GB/s, ${(1e6 * kernelSeconds).toPrecision(2)} µs per kernel`;

const memoryLimitLine =
  "memory: at most 4 GiB for all ranks of one process (WebAssembly addresses 32 bits); beyond, --transport tcp starts a process per rank";

/** Describes the state of the BLAS library for matrix products on the CPU. */
const blasLine = (blas: BlasSurvey): string => {
  const { state } = blas;
  if (state === "ready")
    return `${blas.identity}, faster for ${blas.faster} of ${blas.measured} measured shapes; jobs use it unless they set blas: off${blas.concurrent ? "" : `; ${noLocksAdvice}`}`;
  if (state === "broken") return `cannot be used, and jobs without blas: off are rejected: ${blas.reason}`;
  const found = blas.libraries.length > 0;
  const first = found
    ? `${blas.libraries.join(", ")} found, but nothing built`
    : "none found (Debian: apt install g++ libopenblas0-serial)";
  return `${first}; products run in WebAssembly; to multiply faster: ${asTyped("skein-train blas build")}`;
};

/** Formats the diagnosis as lines for the user, one per finding. */
export const formatDiagnosis = ({ node, hardware: { webgpu, rates }, blas, data, job }: Diagnosis): string[] => {
  const lines: [string, string][] = [["node", node]];
  lines.push(["cpu", memoryLimitLine]);
  if (rates !== undefined) lines.push(["", ratesLine(rates.cpu)]);
  lines.push(["blas", blasLine(blas)]);
  if ("install" in webgpu) lines.push(["webgpu", `not installed; to compute on a GPU: ${webgpu.install}`]);
  else if ("missing" in webgpu) lines.push(["webgpu", `not available: ${webgpu.missing}`]);
  else {
    const { facts } = webgpu;
    lines.push(["webgpu", `${facts.adapter}${facts.software ? " (software: a GPU emulated on the CPU)" : ""}`]);
    if (rates !== undefined) lines.push(["", ratesLine(rates.webgpu)]);
    for (const [feature, use] of Object.entries(optionalFeatures) as [OptionalFeature, string][]) {
      lines.push([
        "",
        isEnabled(facts, feature)
          ? `${feature}: on, ${use}`
          : `${feature}: off, this adapter does not offer it; ${fallbacks[feature]}`,
      ]);
    }
    lines.push([
      "",
      `largest tensor of a kernel ${formatBytes(facts.maxBindingBytes)}, largest buffer ${formatBytes(facts.maxBufferBytes)}`,
    ]);
  }
  for (const { kind, holds, install } of data)
    lines.push([`data ${kind}`, install === undefined ? holds : `not installed; for ${holds}: ${install}`]);
  if (job !== undefined) {
    lines.push([`job ${job.name}`, `auto would choose ${job.choice.backend}: ${job.choice.reason}`]);
    lines.push(["", memoryLine(job.memory)]);
    if (job.asked !== "auto") lines.push(["", `the job sets backend: ${job.asked}`]);
  }
  const width = Math.max(...lines.map(([name]) => name.length));
  return lines.map(([name, value]) => `${name.padEnd(width)}  ${value}`);
};
