import type { HardwareFile } from "@skein/cost-model/hardware";
import type { KernelStep } from "@skein/cost-model/pricing";
import { millisecondsText } from "@skein/report";
import type { JobFacts } from "skein-train/profiling";
import { missedRunLines } from "./calibration-lines.ts";
import { type Extrapolation, extrapolationLines } from "./extrapolation.ts";
import type { Prediction } from "./predict-step.ts";

/**
 * Notes about the gradient exchange to print, by how the exchange of the job is determined. Empty if the job file sets
 * the exchange.
 */
const exchangeLines: { readonly [exchange in JobFacts["exchange"]]: readonly string[] } = {
  given: [],
  planned: ["  the exchange is planned from these prices; a run plans it from measurements"],
  tuned: ["  a run tunes bucket sizes; this prediction uses the initial size"],
};

/** Maximum number of printed operators, and of printed collectives. */
const maxRows = 10;

const isKernel = (step: Prediction["program"][number]): step is KernelStep => step.kind === "kernel";

/** Formats a prediction as lines of text for a terminal with 80 columns. */
export const predictionLines = (
  facts: JobFacts,
  hardware: HardwareFile,
  { program, simulated }: Prediction,
  extrapolated?: Extrapolation,
): string[] => {
  const { stepSeconds, exposedSeconds, symmetry } = simulated;
  const exposed = Math.max(...exposedSeconds);
  const kernels = program.filter(isKernel);
  const byName = [...Map.groupBy(kernels, ({ name }) => name)]
    .map(([name, own]) => ({
      name,
      calls: own.length,
      seconds: own.reduce((sum, { price }) => sum + price.seconds, 0),
    }))
    .toSorted((a, b) => b.seconds - a.seconds)
    .slice(0, maxRows);
  const total = kernels.reduce((sum, { price }) => sum + price.seconds, 0);
  const assumed = kernels.reduce((sum, { price }) => sum + (price.basis === "assumed" ? price.seconds : 0), 0);
  return [
    `${facts.name} on ${hardware.name}: ${millisecondsText(stepSeconds)} per step, ${(facts.samplesPerStep / stepSeconds).toPrecision(3)} samples/s`,
    `  computing ${millisecondsText(total)}, exposed communication ${millisecondsText(exposed)}`,
    `  ${symmetry.classes} of ${symmetry.ranks} ranks were simulated; the other ranks are equivalent`,
    ...(assumed > 0
      ? [
          `  ${((100 * assumed) / total).toFixed(0)} % of the computing is in operators or sizes that were not measured on this hardware`,
        ]
      : []),
    ...exchangeLines[facts.exchange],
    ...extrapolationLines(facts, hardware, extrapolated).map((line) => `  ${line}`),
    ...missedRunLines(hardware.calibration?.runs ?? []).map((line) => `  ${line}`),
    "",
    ...byName.map(
      ({ name, calls, seconds }) =>
        `${millisecondsText(seconds).padStart(9)}  ${((100 * seconds) / stepSeconds).toFixed(1).padStart(5)} %  ${name}${calls > 1 ? `, ${calls} calls` : ""}`,
    ),
    ...program
      .flatMap((step) => (step.kind === "start" && step.price.seconds > 0 ? [step] : []))
      .toSorted((a, b) => b.price.seconds - a.price.seconds)
      .slice(0, maxRows)
      .map(
        ({ name, price, bytes }) =>
          `${millisecondsText(price.seconds).padStart(9)}  ${name}: ${(bytes / 1024).toFixed(1)} KiB by ${price.algorithm}`,
      ),
  ];
};
