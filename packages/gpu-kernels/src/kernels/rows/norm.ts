import type { RowProgram } from "./row-program.ts";
import { wgsl } from "../../wgsl.ts";

/**
 * WGSL of the mean and the sum of squared deviations for each row. Each component of a lane's vectors is a separate
 * stream. Several vectors at a time are added to a stream by the method of Chan, Golub and LeVeque (1983, "Algorithms
 * for computing the sample variance"). Plain sums of squares would lose precision by cancellation.
 *
 * Entries are relative to an entry of their row, `pivot`. For rows far from zero, the rounding error of a mean would
 * otherwise be a large fraction of a standard deviation. The pivot is the median of three entries, so that a single
 * outlier is never the pivot. The last step corrects the mean by the mean of the remaining deviations.
 */
const moments: NonNullable<RowProgram["statistics"]> = {
  fields: ["count", "average", "squares"],
  begin: "var seen_count = 0.0; var seen_average = values(); var seen_squares = values();",
  accumulate: (ids) => {
    const count = `${ids.length}.0`;
    const deviations = ids.map((id) => `(d${id} - sample) * (d${id} - sample)`).join(" + ");
    return wgsl`
      { ${ids.map((id) => `let d${id} = x${id} - pivot;`)}
        let sample = (${ids.map((id) => `d${id}`).join(" + ")}) * ${1 / ids.length};
        let step = sample - seen_average; let fraction = ${count} / (seen_count + ${count});
        seen_squares += (${deviations}) + step * step * (seen_count * fraction);
        seen_average += step * fraction; seen_count += ${count}; }
    `;
  },
  settle: "settle(seen_count, seen_average, seen_squares)",
  join: wgsl`
    let sums = row_sum2(lane, vec2<f32>(own.count, own.count * own.average));
    let average = sums.y / sums.x;
    let rest = own.average - average;
    let deviations = row_sum2(lane, vec2<f32>(own.squares + own.count * rest * rest, own.count * rest));
    let correction = deviations.y / sums.x;
    return State(sums.x, average + correction, deviations.x - deviations.y * correction);
  `,
};

const momentFunctions = wgsl`
  fn settle(count: f32, averages: values, squares: values) -> State {
    let average = total(averages) * (1.0 / f32(vector_width));
    let rest = averages - values(average);
    return State(count * f32(vector_width), average, total(squares) + count * total(rest * rest));
  }
`;

/** Formats a number as a WGSL literal. */
const literal = (value: number): string => (Number.isInteger(value) ? `${value}.0` : String(value));

/** Returns the program of `(x − mean) · rstd · γ + β` with rstd = 1/√(variance + ε). Stores the mean and rstd. */
export const layerNormProgram = (epsilon: number): RowProgram => ({
  label: "layer-norm",
  inputs: [
    { name: "x", per: "element", source: { input: 0 } },
    { name: "gamma", per: "column", source: { input: 1 } },
    { name: "beta", per: "column", source: { input: 2 } },
  ],
  outputs: [
    { name: "y", per: "element", source: { output: 0 } },
    { name: "means", per: "row", source: { output: 1 } },
    { name: "rstds", per: "row", source: { output: 2 } },
  ],
  functions: momentFunctions,
  prologue: wgsl`
    let first = entry_of(x[base], 0u);
    let second = entry_of(x[base + row_columns / 2u], 0u);
    let third = entry_of(x[base + row_columns - 1u], 0u);
    let pivot = values(max(min(first, second), min(max(first, second), third)));
  `,
  statistics: moments,
  row: `let center = values(state.average); let rstd = inverseSqrt(state.squares / state.count + ${literal(epsilon)});`,
  perRow: "means[row] = entry_of(pivot, 0u) + state.average; rstds[row] = rstd;",
  finish: (id) => `y[at${id}] = ((x${id} - pivot) - center) * rstd * gamma[c${id}] + beta[c${id}];`,
});

/** Returns the program of `x · rstd · γ` with rstd = 1/√(mean x² + ε). Stores rstd. */
export const rmsNormProgram = (epsilon: number, columns: number): RowProgram => ({
  label: "rms-norm",
  inputs: [
    { name: "x", per: "element", source: { input: 0 } },
    { name: "gamma", per: "column", source: { input: 1 } },
  ],
  outputs: [
    { name: "y", per: "element", source: { output: 0 } },
    { name: "rstds", per: "row", source: { output: 1 } },
  ],
  statistics: {
    fields: ["squares"],
    begin: "var seen = values();",
    accumulate: (ids) => `seen += ${ids.map((id) => `x${id} * x${id}`).join(" + ")};`,
    settle: "State(total(seen))",
    join: "return State(row_sum(lane, own.squares));",
  },
  row: `let rstd = inverseSqrt(state.squares / ${columns}.0 + ${literal(epsilon)});`,
  perRow: "rstds[row] = rstd;",
  finish: (id) => `y[at${id}] = x${id} * rstd * gamma[c${id}];`,
});
