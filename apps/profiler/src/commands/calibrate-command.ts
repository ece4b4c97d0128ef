import { writeFileSync } from "node:fs";
import { linkCosts } from "@skein/collectives";
import type { ClusterLinks, HardwareFile, KernelSample } from "@skein/cost-model";
import { formatHardwareFile } from "@skein/cost-model/files";
import { ArgumentError } from "@skein/tensor-core";
import { type JobOptions, openJob } from "skein-train/profiling";
import { calibrateDevice } from "../calibrate/calibrate-device.ts";
import { measureKernelGrid } from "../calibrate/kernel-grid.ts";
import { linksOfThreads, noContention, threadLinks } from "../calibrate/thread-links.ts";
import { exitCodes } from "../errors.ts";
import { machineInWords } from "../machine.ts";
import { asTyped } from "../own-command.ts";
import { type MeasuredJob, measureJob } from "../profile/measure-job.ts";
import { countOf } from "./count-of.ts";

export interface CalibrateCommandOptions extends Pick<JobOptions, "ranks" | "transport" | "set"> {
  readonly steps: string;
  readonly output: string;
}

/** Steps before those that count. */
const warmUpSteps = 3;

/** `skein-profile calibrate`: measure this machine by its kernels and by jobs, and write what predictions need. */
export const calibrateCommand = async (
  files: readonly string[],
  { steps, output, ...jobOptions }: CalibrateCommandOptions,
): Promise<number> => {
  const counted = countOf("steps", steps, 2);
  const say = (line: string): void => void process.stderr.write(`${line}\n`);
  const jobs = await Promise.all(files.map((file) => openJob(file, jobOptions)));
  const [first] = jobs;
  if (first === undefined)
    throw new ArgumentError("no job was named; name one or more whose operators and ranks are like those that you will predict");
  const { ranks, transport, backend } = first.facts;
  const other = jobs.find(({ facts }) => facts.ranks !== ranks || facts.transport !== transport || facts.backend !== backend);
  if (other !== undefined)
    throw new ArgumentError(
      `${first.facts.name} has ${ranks} ranks over ${transport} on ${backend}, ${other.facts.name} has ${other.facts.ranks} over ${other.facts.transport} on ${other.facts.backend}; one file describes one machine: set --ranks and --transport for all`,
    );
  say("measuring single kernels");
  const rates = await first.rates();
  const source = `measured by skein-profile calibrate on ${new Date().toISOString().slice(0, 10)}: ${machineInWords()}`;
  const described = {
    name: `${ranks === 1 ? "one rank" : `each of ${ranks} ranks`} of ${machineInWords()}`,
    kind: backend === "cpu" ? "cpu" : "gpu",
    source,
  } as const;
  const samples: KernelSample[] = backend === "cpu" ? await measureKernelGrid() : [];
  const runs: MeasuredJob[] = [];
  for (const job of jobs) {
    say(`measuring ${job.facts.name}: ${warmUpSteps + counted} steps`);
    const run = await measureJob(job, { steps: counted, warmUpSteps });
    runs.push(run);
    samples.push(...run.samples());
  }
  const linksOf = async (): Promise<ClusterLinks> => {
    if (ranks === 1 || transport === "threads") {
      const within =
        ranks === 1
          ? { secondsPerMessage: 0, secondsPerByte: 0 }
          : threadLinks(
              runs.flatMap((run) => run.steps),
              ranks,
            );
      return linksOfThreads(within, source);
    }
    say(`measuring links over ${transport}`);
    return { ...linkCosts(await first.links()), contention: noContention, source };
  };
  const file: HardwareFile = {
    format: "skein-hardware",
    version: 1,
    name: `this machine, ${ranks} ${ranks === 1 ? "rank" : "ranks"}`,
    description: `${machineInWords()}; ${ranks} ranks over ${transport}`,
    device: calibrateDevice(rates, samples, described),
    topology: { ranks, ranksPerHost: ranks },
    links: await linksOf(),
  };
  writeFileSync(output, formatHardwareFile(file));
  const { device } = file;
  process.stdout.write(
    [
      `products     ${(device.flopsPerSecond.f32 / 1e9).toPrecision(3)} GFLOP/s`,
      `memory       ${(device.memoryBytesPerSecond / 1e9).toPrecision(3)} GB/s`,
      `kernel start ${(device.kernelStartSeconds * 1e6).toPrecision(2)} µs`,
      `operators    ${device.efficiencies.length} sizes of ${new Set(device.efficiencies.map(({ operator }) => operator)).size}, from ${samples.length} kernels`,
      asTyped(`written to ${output}; use it with skein-profile predict <job> --hardware ${output}`),
      "",
    ].join("\n"),
  );
  return exitCodes.ok;
};
