import { type Calibration, stages } from "../published/calibrate-cluster.ts";
import { alignColumns } from "../report/align-columns.ts";
import { formatShare } from "./format.ts";

/** Returns the section on the model and the parameters that the calibration found. */
export const parametersSection = ({ found, residuals }: Calibration): string =>
  `## The model and its parameters

An iteration takes what one GPU takes alone (published), and what its communication adds. Gradients are those of the published architectures, ready in the order of the backward pass, whose time is shared out by
multiply-adds. An all-reduce is a ring: 2 (P − 1) steps, and 2 (P − 1) / P of the bytes through the slowest link, a PCIe link of a node or its network card. PCIe is slower while GPUs compute.
BSP sends all after the backward pass; WFBP is \`timelineOf\` with a collective per tensor; MG-WFBP with those that \`planMgWfbp\` joins; ByteScheduler is \`planByteScheduler\` and \`priorityTimeline\`, over
all-reduces never faster than ranks agree on them. Parameter servers take the slower of the ring within a node and 2 M β of the way to the servers and back.

Least squares of relative errors, stage after stage, from the line rates of data sheets; ± is a standard error by the Jacobian. They hold as far as the model does: what is left is no noise.

${alignColumns([
  ["parameter", "value", "unit", "±"],
  ...found.map(({ parameter: { name, unit }, value, relativeError }) => [
    name,
    value.toPrecision(4),
    unit,
    relativeError === undefined ? "not shown by these cells" : formatShare(relativeError),
  ]),
])}

Scatter of relative errors: ${stages.map(({ title }, i) => `${formatShare(residuals[i]!)} of ${title}`).join(", ")}. InfiniBand has no ring rate of its own here: it is faster than the PCIe lanes of a node, so that no row shows it.`;
