import { predictInTurn, predictSimultaneous, simultaneousModels, simultaneousRows } from "../published/simultaneous.ts";
import { alignColumns } from "../report/align-columns.ts";
import { formatMilliseconds as ms } from "./format.ts";

/** Returns the section on simultaneous collectives, for the models with known shapes. */
export const simultaneousSection = (): string => {
  const rows = simultaneousModels.map((model) => {
    const { computeSeconds, exposed } = simultaneousRows.find((row) => row.model === model)!;
    const { waitFree, merged } = predictInTurn(model, computeSeconds);
    const simultaneous = predictSimultaneous(model, computeSeconds);
    return [
      model,
      `${ms(exposed.waitFree)} → ${ms(waitFree)}`,
      `${ms(exposed.merged)} → ${ms(merged)}`,
      `${ms(exposed.simultaneous)} → ${ms(simultaneous)}`,
      `${(exposed.simultaneous / exposed.merged).toFixed(2)} → ${(simultaneous / merged).toFixed(2)}`,
    ];
  });
  return `## Collectives at once (ASC-WFBP)

Exposed communication, ms, measured → predicted. Nothing is fitted: the start-up of 16 ranks over 10 Gbit/s as published with MG-WFBP, a ring's bytes over the 9.43 Gbit/s of the rows, two collectives at once 1.5 times as slow.
How many GPUs it was is not said.

${alignColumns([["model", "WFBP", "MG-WFBP", "ASC-WFBP", "ASC / MG"], ...rows])}`;
};
