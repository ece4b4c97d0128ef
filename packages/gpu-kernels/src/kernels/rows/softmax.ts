import type { RowProgram } from "./row-program.ts";
import { wgsl } from "../../wgsl.ts";

/** WGSL that computes the maximum of a row and its sum of exponentials in one pass, without overflow. */
const exponentials = wgsl`
  const lowest = -3.4028234663852886e38;
  fn infinity(sign: u32) -> f32 { return bitcast<f32>(0x7f800000u | sign | never); }
  fn not_a_number() -> f32 { return bitcast<f32>(0x7fc00000u | never); }
  fn is_number(v: f32) -> bool { return (bitcast<u32>(v) & 0x7f800000u) != 0x7f800000u; }
  fn magnitudes(v: values) -> words { return bitcast<words>(v) & words(0x7fffffffu); }
  // Maxima pass over NaN as they like; a lane that saw one says +inf, which makes the whole row NaN just as well.
  fn largest_of(v: values, magnitude: words) -> f32 { return select(highest(v), infinity(0u), highest_word(magnitude) > 0x7f800000u); }
  // Where everything so far is -inf there is nothing to subtract.
  fn shift_of(largest: values) -> values { return select(largest, values(), largest < values(lowest)); }
  fn shift_of_one(largest: f32) -> f32 { return select(largest, 0.0, largest < lowest); }
`;

/** Returns a WGSL expression that combines the variables `names` with `f`, as a balanced tree. */
const fold = (names: readonly string[], f: (a: string, b: string) => string): string => {
  if (names.length === 1) return names[0]!;
  const middle = Math.ceil(names.length / 2);
  return f(fold(names.slice(0, middle), f), fold(names.slice(middle), f));
};

const maximum = (a: string, b: string): string => `max(${a}, ${b})`;

/**
 * WGSL that computes `largest` and `total = Σ exp(x − largest)` of each row. A lane keeps both values for the elements
 * processed so far and rescales the sum when the maximum grows (Milakov and Gimelshein 2018, "Online normalizer
 * calculation for softmax"). The sum is rescaled at most once per several vectors.
 */
export const sumOfExponentials: NonNullable<RowProgram["statistics"]> = {
  fields: ["largest", "total"],
  begin: "var seen_largest = values(infinity(0x80000000u)); var seen_total = values(); var magnitude = words();",
  accumulate: (ids) =>
    wgsl`
      { let next = max(seen_largest, ${fold(
        ids.map((id) => `x${id}`),
        maximum,
      )}); let shift = shift_of(next);
        magnitude = max(magnitude, ${fold(
          ids.map((id) => `magnitudes(x${id})`),
          maximum,
        )});
        seen_total = seen_total * exp(seen_largest - shift) + (${ids.map((id) => `exp(x${id} - shift)`).join(" + ")}); seen_largest = next; }
    `,
  settle: "settle(seen_largest, seen_total, magnitude)",
  join: wgsl`
    let largest = row_max(lane, own.largest);
    return State(largest, row_sum(lane, own.total * exp(own.largest - shift_of_one(largest))));
  `,
};

const functions = wgsl`
  ${exponentials}
  fn settle(largest: values, sum: values, magnitude: words) -> State {
    let one = largest_of(largest, magnitude);
    return State(one, total(sum * exp(largest - values(shift_of_one(one)))));
  }
`;

/**
 * Returns WGSL for vectors in registers: x is replaced by exp(x − largest), so that each exponential is computed once.
 */
const residentExponentials = (ids: readonly string[], tail: string | undefined): string => {
  const all = tail === undefined ? ids : [...ids, tail];
  const guarded = (id: string, text: string): string => (id === tail ? `if (in_tail) { ${text} }` : text);
  return wgsl`
    var seen_largest = values(infinity(0x80000000u)); var magnitude = words();
    ${all.map((id) => guarded(id, `seen_largest = max(seen_largest, x${id}); magnitude = max(magnitude, magnitudes(x${id}));`))}
    let row_largest = row_max(lane, largest_of(seen_largest, magnitude));
    let shift = values(shift_of_one(row_largest));
    var seen_total = values();
    ${all.map((id) => `var e${id} = values(); ${guarded(id, `e${id} = exp(x${id} - shift); seen_total += e${id};`)}`)}
    let state = State(row_largest, row_sum(lane, total(seen_total)));
  `;
};

/**
 * Program of `exp(x − max x) / Σ exp(x − max x)`. The result of a row that contains NaN or +inf, or only -inf, is NaN.
 */
export const softmaxProgram: RowProgram = {
  label: "softmax",
  inputs: [{ name: "x", per: "element", source: { input: 0 } }],
  outputs: [{ name: "y", per: "element", source: { output: 0 } }],
  functions,
  statistics: { ...sumOfExponentials, resident: residentExponentials },
  row: "let scale = select(not_a_number(), 1.0 / state.total, is_number(state.largest));",
  finish: (id) => `y[at${id}] = exp(x${id} - values(state.largest)) * scale;`,
  finishResident: (id) => `y[at${id}] = e${id} * scale;`,
};

/**
 * Program of `x − log Σ exp(x)`, as two subtractions: x − maximum − log Σ exp(x − maximum). Adding the logarithm to a
 * large maximum first would lose precision.
 */
export const logSoftmaxProgram: RowProgram = {
  label: "log-softmax",
  inputs: softmaxProgram.inputs,
  outputs: softmaxProgram.outputs,
  functions,
  statistics: sumOfExponentials,
  row: "let log_total = select(not_a_number(), log(state.total), is_number(state.largest));",
  finish: (id) => `y[at${id}] = (x${id} - values(state.largest)) - values(log_total);`,
};

/**
 * Returns the row statistics that sum one term per element over the row. `term` returns the WGSL of the term for vector
 * `id`.
 */
const sumOf = (term: (id: string) => string): NonNullable<RowProgram["statistics"]> => ({
  fields: ["sum"],
  begin: "var seen = values();",
  accumulate: (ids) => `seen += ${ids.map(term).join(" + ")};`,
  settle: "State(total(seen))",
  join: "return State(row_sum(lane, own.sum));",
});

const backwardInputs: RowProgram["inputs"] = [
  { name: "y", per: "element", source: { input: 0 } },
  { name: "g", per: "element", source: { input: 1 } },
];
const backwardOutputs: RowProgram["outputs"] = [{ name: "dx", per: "element", source: { output: 0 } }];

/** Program of the softmax gradient `y · (g − Σ g·y)`. */
export const softmaxBackwardProgram: RowProgram = {
  label: "softmax-backward",
  inputs: backwardInputs,
  outputs: backwardOutputs,
  statistics: sumOf((id) => `y${id} * g${id}`),
  finish: (id) => `dx[at${id}] = y${id} * (g${id} - values(state.sum));`,
};

/** Program of the log-softmax gradient `g − exp(y) · Σ g`. */
export const logSoftmaxBackwardProgram: RowProgram = {
  label: "log-softmax-backward",
  inputs: backwardInputs,
  outputs: backwardOutputs,
  statistics: sumOf((id) => `g${id}`),
  finish: (id) => `dx[at${id}] = g${id} - exp(y${id}) * state.sum;`,
};

/**
 * Returns the program that computes, for each row, `logsumexp(logits) − logits[label]`, the maximum, and the sum of
 * exponentials (NaN if the softmax is undefined). Reads the logits once. The loss is NaN if the label is not a class.
 */
export const crossEntropyProgram = (classes: number): RowProgram => ({
  label: "cross-entropy",
  inputs: [
    { name: "x", per: "element", source: { input: 0 } },
    { name: "labels", per: "row", type: "i32", source: { input: 1 } },
  ],
  outputs: [
    { name: "losses", per: "row", source: { output: 0 } },
    { name: "maxima", per: "row", source: { output: 1 } },
    { name: "totals", per: "row", source: { output: 2 } },
  ],
  functions,
  statistics: sumOfExponentials,
  row: "let total_or_none = select(not_a_number(), state.total, is_number(state.largest));",
  perRow: wgsl`
    let label = u32(labels[row]);
    let entry = base * vector_width + min(label, ${classes - 1}u);
    let logit = entry_of(x[entry / vector_width], entry % vector_width);
    maxima[row] = select(not_a_number(), state.largest, is_number(state.largest));
    totals[row] = total_or_none;
    losses[row] = select(not_a_number(), (state.largest - logit) + log(total_or_none), label < ${classes}u);
  `,
});

/**
 * Returns the program of the cross-entropy gradient `(exp(logits − maximum) / total − onehot(label)) · g`. The
 * gradients of a row are NaN if its label is not a class.
 */
export const crossEntropyBackwardProgram = (classes: number): RowProgram => ({
  label: "cross-entropy-backward",
  inputs: [
    { name: "x", per: "element", source: { input: 0 } },
    { name: "labels", per: "row", type: "i32", source: { input: 1 } },
    { name: "maxima", per: "row", source: { input: 2 } },
    { name: "totals", per: "row", source: { input: 3 } },
    { name: "g", per: "row", source: { input: 4 } },
  ],
  outputs: [{ name: "dx", per: "element", source: { output: 0 } }],
  functions: "fn not_a_number() -> f32 { return bitcast<f32>(0x7fc00000u | never); }",
  row: wgsl`
    let label = u32(labels[row]);
    let largest = values(maxima[row]);
    let scale = 1.0 / totals[row];
    let gradient = select(not_a_number(), g[row], label < ${classes}u);
  `,
  finish: (id) =>
    `dx[at${id}] = (exp(x${id} - largest) * scale - select(values(), values(1.0), entries + words(c${id} * vector_width) == words(label))) * gradient;`,
});
