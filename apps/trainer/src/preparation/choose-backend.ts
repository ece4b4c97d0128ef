import type { Blas } from "@skein/cpu-kernels";
import { type DeviceFacts, type WebGpuBackend, WebGpuNotInstalledError } from "@skein/gpu-kernels";
import { SkeinError } from "@skein/tensor-core";
import { type BackendName, openWebGpu } from "../backend/backend.ts";
import { type BackendRates, estimateSeconds } from "../backend/backend-rates.ts";
import { mayHaveGpu } from "../backend/gpu-devices.ts";
import { measureCpuRates, measureRates } from "../backend/measure-rates.ts";
import type { Prepared } from "./prepare.ts";
import { traceStep } from "./prepared-step.ts";
import { meshOf } from "../job/mesh.ts";

/** The rates of both backends. */
export interface MeasuredRates {
  readonly cpu: BackendRates;
  readonly webgpu: BackendRates;
}

/** What this machine computes on. */
export interface Hardware {
  /** The WebGPU device, or why there is none; or what would install the package that looks for one. */
  readonly webgpu: { readonly facts: DeviceFacts } | { readonly missing: string } | { readonly install: string };
  /** Absent where there is nothing to compare, or nothing worth it. */
  readonly rates?: MeasuredRates;
}

/**
 * Look for a WebGPU device, and measure both backends if it is more than a processor in disguise.
 *
 * @param always look for that one and measure it, too.
 * @param blas what the CPU would multiply by.
 * @param threads with how many threads it would compute.
 */
export const surveyHardware = async ({
  always,
  blas,
  threads = 1,
}: {
  readonly always: boolean;
  readonly blas?: Blas | undefined;
  readonly threads?: number;
}): Promise<Hardware> => {
  if (!always && !mayHaveGpu()) return { webgpu: { missing: "this machine has no GPU" } };
  let backend: WebGpuBackend;
  try {
    backend = await openWebGpu();
  } catch (error) {
    if (error instanceof WebGpuNotInstalledError) return { webgpu: { install: error.install } };
    if (!(error instanceof SkeinError) || error.kind !== "environment") throw error;
    return { webgpu: { missing: error.message } };
  }
  try {
    const { facts } = backend;
    if (facts.software && !always) return { webgpu: { facts } };
    return {
      webgpu: { facts },
      rates: { cpu: await measureCpuRates({ blas, threads }), webgpu: await measureRates(backend) },
    };
  } finally {
    backend.close();
  }
};

export interface BackendChoice {
  readonly backend: BackendName;
  readonly reason: string;
  /** Expected seconds of a step, collectives left out; where both backends were measured. */
  readonly seconds?: { readonly cpu: number; readonly webgpu: number };
}

const milliseconds = (seconds: number): string => `${(1000 * seconds).toPrecision(3)} ms`;

/** What `backend: auto` means for a job on this machine. Pure. */
export const chooseBackend = (prepared: Prepared, { webgpu, rates }: Hardware): BackendChoice => {
  if ("install" in webgpu)
    return { backend: "cpu", reason: "no GPU was looked for, since the optional package webgpu is not installed" };
  if ("missing" in webgpu) return { backend: "cpu", reason: webgpu.missing };
  const { facts } = webgpu;
  if (rates === undefined)
    return {
      backend: "cpu",
      reason: `the only WebGPU adapter, ${facts.adapter}, is software: a processor that pretends to be a GPU`,
    };
  const step = traceStep(prepared);
  const axes = Object.keys(meshOf(prepared.job));
  const seconds = {
    cpu: estimateSeconds(step.onCpu(), rates.cpu, "cpu", axes),
    webgpu: estimateSeconds(step.onWebGpu(facts), rates.webgpu, "gpu", axes),
  };
  const backend = seconds.webgpu < seconds.cpu ? "webgpu" : "cpu";
  return {
    backend,
    reason: `a step is expected to take ${milliseconds(seconds.cpu)} on the CPU and ${milliseconds(seconds.webgpu)} on ${facts.adapter}`,
    seconds,
  };
};
