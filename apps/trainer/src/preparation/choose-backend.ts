import { meshOf } from "@skein/job/node";
import { millisecondsText } from "@skein/report";
import type { Blas } from "@skein/cpu-kernels";
import { type DeviceFacts, type WebGpuBackend, WebGpuNotInstalledError } from "@skein/gpu-kernels";
import { SkeinError } from "@skein/tensor-core";
import { type BackendName, openWebGpu } from "../backend/backend.ts";
import { type BackendRates, estimateSeconds } from "../backend/backend-rates.ts";
import { mayHaveGpu } from "../backend/gpu-devices.ts";
import { measureCpuRates, measureRates } from "../backend/measure-rates.ts";
import type { Prepared } from "./prepared.ts";
import { traceStep } from "./prepared-step.ts";

/** Measured rates of both backends. */
export interface MeasuredRates {
  readonly cpu: BackendRates;
  readonly webgpu: BackendRates;
}

/** Compute devices of this machine. */
export interface Hardware {
  /**
   * Properties of the WebGPU device; or the reason why no device was found; or the command that installs the package
   * for WebGPU, if the package is missing.
   */
  readonly webgpu: { readonly facts: DeviceFacts } | { readonly missing: string } | { readonly install: string };
  /** Measured rates. Absent if there is no device, or only a software device that was not requested. */
  readonly rates?: MeasuredRates;
}

/**
 * Searches for a WebGPU device, and measures both backends unless the device is a software adapter.
 *
 * @param always Whether to search for and measure software adapters as well.
 * @param blas BLAS for matrix products on the CPU.
 * @param threads Number of threads on the CPU.
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
  /** Predicted seconds of a step, without collectives. Absent unless both backends were measured. */
  readonly seconds?: { readonly cpu: number; readonly webgpu: number };
}

/** Resolves `backend: auto` for a job on this machine. Pure. */
export const chooseBackend = (prepared: Prepared, { webgpu, rates }: Hardware): BackendChoice => {
  if ("install" in webgpu)
    return { backend: "cpu", reason: "no GPU was searched for, because the optional package webgpu is not installed" };
  if ("missing" in webgpu) return { backend: "cpu", reason: webgpu.missing };
  const { facts } = webgpu;
  if (rates === undefined)
    return {
      backend: "cpu",
      reason: `the only WebGPU adapter, ${facts.adapter}, is software: a GPU emulated on the CPU`,
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
    reason: `a step is expected to take ${millisecondsText(seconds.cpu)} on the CPU and ${millisecondsText(seconds.webgpu)} on ${facts.adapter}`,
    seconds,
  };
};
