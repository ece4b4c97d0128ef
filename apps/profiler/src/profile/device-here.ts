import { totalmem } from "node:os";
import type { ComputeDevice } from "@skein/cost-model/hardware";
import { deviceOfRates, type ProfiledJob } from "skein-train/profiling";

/** Measures the peak rates of this machine for a short time, and returns the machine as a device. */
export const deviceHere = async (job: ProfiledJob): Promise<ComputeDevice> =>
  deviceOfRates(await job.rates(), {
    name: job.facts.backend === "cpu" ? "this processor, one core" : "this GPU",
    kind: job.facts.backend === "cpu" ? "cpu" : "gpu",
    memoryBytes: totalmem(),
  });
