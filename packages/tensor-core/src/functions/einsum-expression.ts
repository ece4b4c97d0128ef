import { ArgumentError, ShapeError } from "../errors.ts";
import { formatSpec, type TensorSpec } from "../shape.ts";

/**
 * Dimension names of an einsum operand or result. Each name is a letter, except that the dimensions of "..." are named
 * "…0", "…1", counted from the last dimension, so that operands of different rank are aligned at the end.
 */
export type Labels = readonly string[];

/** Parsed einsum expression, checked against the operands. */
export interface EinsumExpression {
  readonly inputs: readonly Labels[];
  readonly output: Labels;
  /** Size of each dimension name; the broadcast size for names that begin with "…". */
  readonly sizes: ReadonlyMap<string, number>;
}

const isEllipsis = (label: string): boolean => label.startsWith("…");

/** Splits the text of one operand into letters and "...". */
const tokensOf = (part: string, expression: string): string[] => {
  const tokens = part.match(/\.\.\.|[^]/g) ?? [];
  const strange = tokens.find((token) => token !== "..." && !/^[A-Za-z]$/.test(token));
  if (strange !== undefined)
    throw new ArgumentError(
      `einsum: "${strange}" in "${expression}" is not a dimension name; use a letter for each dimension, "..." for all others, as in "bij,bjk->bik"`,
    );
  if (tokens.filter((token) => token === "...").length > 1)
    throw new ArgumentError(
      `einsum: "${part}" in "${expression}" has "..." twice; once is enough for all dimensions without a letter`,
    );
  return tokens;
};

const expand = (tokens: readonly string[], numOthers: number): string[] =>
  tokens.flatMap((token) =>
    token === "..." ? Array.from({ length: numOthers }, (_, i) => `…${numOthers - 1 - i}`) : [token],
  );

const labelsOf = (tokens: readonly string[], operand: TensorSpec, position: number): string[] => {
  const letters = tokens.filter((token) => token !== "...").length;
  const { length: rank } = operand.shape;
  if (tokens.includes("...") ? letters > rank : letters !== rank)
    throw new ShapeError(
      "einsum",
      `"${tokens.join("")}" names ${letters} dimensions, but operand ${position} is ${formatSpec(operand)} with ${rank}; name each of them, or write "..." for the others`,
    );
  return expand(tokens, rank - letters);
};

/**
 * Returns the result dimensions of an expression without `->`: the dimensions of "...", then the letters that occur
 * exactly once, in alphabetical order.
 */
const impliedOutput = (inputs: readonly Labels[]): string[] => {
  const all = inputs.flat();
  const others = [...new Set(all.filter(isEllipsis))].sort().reverse();
  return [
    ...others,
    ...all.filter((label) => !isEllipsis(label) && all.indexOf(label) === all.lastIndexOf(label)).sort(),
  ];
};

const statedOutput = (part: string, inputs: readonly Labels[], expression: string): string[] => {
  const tokens = tokensOf(part, expression);
  const known = new Set(inputs.flat());
  const others = [...known].filter(isEllipsis).length;
  if (others > 0 && !tokens.includes("..."))
    throw new ArgumentError(
      `einsum: "${expression}" has "..." on the left only; write it on the right too, or name the dimensions to sum over`,
    );
  const output = expand(tokens, others);
  output.forEach((label, i) => {
    if (!known.has(label))
      throw new ArgumentError(
        `einsum: "${label}" on the right of "${expression}" is missing on the left; name it in an operand`,
      );
    if (output.indexOf(label) !== i)
      throw new ArgumentError(
        `einsum: "${label}" occurs twice on the right of "${expression}"; name each dimension of the result once`,
      );
  });
  return output;
};

const sizesOf = (
  inputs: readonly Labels[],
  operands: readonly TensorSpec[],
  expression: string,
): Map<string, number> => {
  const sizes = new Map<string, number>();
  const first = new Map<string, TensorSpec>();
  inputs.forEach((labels, position) => {
    const operand = operands[position]!;
    labels.forEach((label, dim) => {
      const size = operand.shape[dim]!;
      const known = sizes.get(label) ?? size;
      const stretches = isEllipsis(label) && (known === 1 || size === 1);
      if (known !== size && !stretches)
        throw new ShapeError(
          "einsum",
          `${isEllipsis(label) ? `a dimension of "..."` : `"${label}"`} in "${expression}" is ${known} in ${formatSpec(first.get(label)!)} and ${size} in ${formatSpec(operand)}; a name must have the same size everywhere`,
        );
      if (!sizes.has(label) || known === 1) {
        sizes.set(label, size);
        first.set(label, operand);
      }
    });
  });
  return sizes;
};

/**
 * Parses an expression such as `"bij,bjk->bik"` for the given operands.
 *
 * @throws ArgumentError if the expression is invalid; ShapeError if the operands do not match the expression.
 */
export const parseEinsum = (expression: string, operands: readonly TensorSpec[]): EinsumExpression => {
  const [left, right, ...more] = expression.replaceAll(" ", "").split("->");
  if (left === undefined || more.length > 0)
    throw new ArgumentError(
      `einsum: "${expression}" has "->" more than once; write the operands on its left and the result on its right`,
    );
  const parts = left.split(",");
  if (parts.length !== operands.length)
    throw new ArgumentError(
      `einsum: "${expression}" names ${parts.length} operand${parts.length === 1 ? "" : "s"}, but ${operands.length} were given; separate them by commas, one for each`,
    );
  const inputs = parts.map((part, position) => labelsOf(tokensOf(part, expression), operands[position]!, position));
  const output = right === undefined ? impliedOutput(inputs) : statedOutput(right, inputs, expression);
  return { inputs, output, sizes: sizesOf(inputs, operands, expression) };
};
