import type { Advice, OperatorRow, ProfileReport, Times } from "@skein/report";

/** What spans tell beside the rows of a report. */
export interface Beside {
  /** Waiting for batches. */
  readonly dataSeconds: Times;
}

/** A part of a step that is worth a sentence. */
const worthSaying = 0.05;

const percent = (share: number): string => `${(100 * share).toFixed(share < 0.1 ? 1 : 0)} %`;
const milliseconds = (seconds: number): string => `${(1000 * seconds).toPrecision(3)} ms`;
const placeOf = ({ operator, scope }: OperatorRow): string => (scope === "" ? operator : `${operator} in ${scope}`);

type Figures = Omit<ProfileReport, "advice">;

const exposedAdvice = ({ collectives, exposedSeconds, step }: Figures): Advice[] => {
  const share = exposedSeconds.median / step.median;
  if (share < worthSaying) return [];
  const longest = collectives.toSorted((a, b) => b.exposedSeconds.median - a.exposedSeconds.median).slice(0, 3);
  return [
    {
      finding: `${percent(share)} of the step is communication that computation does not hide (${milliseconds(exposedSeconds.median)}), most of it ${longest.map(({ name }) => name).join(", ")}`,
      cure: "try overlap: wait-free with buckets: {kind: mg-wfbp}, and a compression of docs/algorithms.md",
      basis: "measured: what ranks waited at the done of a collective; a slower rank's computing is waited for as well",
    },
  ];
};

const dataAdvice = ({ step }: Figures, { dataSeconds }: Beside): Advice[] => {
  const share = dataSeconds.median / step.median;
  if (share < worthSaying) return [];
  return [
    {
      finding: `${percent(share)} of the step is waiting for a batch (${milliseconds(dataSeconds.median)})`,
      cure: "make samples cheaper to read, or give the reader a core of its own",
      basis: "measured: from the wish for a batch until it is there",
    },
  ];
};

const smallKernelAdvice = ({ operators, step }: Figures): Advice[] => {
  const small = operators.filter(({ calls, seconds }) => calls > 0 && seconds.median / calls < 20e-6);
  const total = small.reduce((sum, { seconds }) => sum + seconds.median, 0);
  const share = total / step.median;
  if (share < worthSaying) return [];
  const calls = small.reduce((sum, row) => sum + row.calls, 0);
  return [
    {
      finding: `${percent(share)} of the step are ${calls} kernels of less than 20 µs each`,
      cure: "a larger batch gives each kernel more to do",
      basis: "measured: kernels by their mean time",
    },
  ];
};

const rooflineAdvice = ({ operators }: Figures): Advice[] => {
  const far = operators
    .filter(({ rooflineSeconds = 0, seconds }) => rooflineSeconds > 0 && seconds.median > 2 * rooflineSeconds)
    .toSorted((a, b) => b.seconds.median - b.rooflineSeconds! - (a.seconds.median - a.rooflineSeconds!))
    .filter(({ share }) => share >= worthSaying)
    .slice(0, 1);
  return far.map((row) => ({
    finding: `${placeOf(row)} (${row.phase}) takes ${percent(row.share)} of the step and reaches ${percent(row.rooflineSeconds! / row.seconds.median)} of what the device could do`,
    basis: `measured beside the roofline of flops and bytes; bound by ${row.boundBy ?? "the start of kernels"}`,
  }));
};

/** Say in words what a profile shows, what matters most first. */
export const adviceOn = (figures: Figures, beside: Beside): Advice[] => [
  ...exposedAdvice(figures),
  ...dataAdvice(figures, beside),
  ...rooflineAdvice(figures),
  ...smallKernelAdvice(figures),
];
