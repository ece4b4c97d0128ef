import * as functions from "@skein/tensor-core";
import { ArgumentError, type DType, dtypes, formatShape, type Tensor, type TensorSpec } from "@skein/tensor-core";
import { operators } from "@skein/tensor-core/backend";

export interface CallOptions {
  /** Shapes of the operands, such as `128x256,256x64`; `scalar` for an operand without dimensions. */
  readonly shapes?: string;
  /** Storage types of the operands: one per operand, or a single type for all operands. */
  readonly dtypes: string;
  /** Arguments after the tensors, as JSON: an object of options, or a list of arguments. */
  readonly with?: string;
  /** Whether to also print the shaders of the gradients. Default: false. */
  readonly gradient?: boolean;
}

/** A tensor function, with the specs of its operands. */
export interface Call {
  readonly name: string;
  readonly fn: (...tensors: Tensor[]) => unknown;
  readonly specs: readonly TensorSpec[];
  readonly gradient: boolean;
}

const camelCase = (name: string): string => name.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());

/** Tensor functions with a single operator, by operator name. */
const callable: ReadonlyMap<string, (...args: unknown[]) => unknown> = new Map(
  Object.keys(operators).flatMap((name) => {
    const fn = (functions as { readonly [name: string]: unknown })[camelCase(name)];
    return typeof fn === "function" ? [[name, fn as (...args: unknown[]) => unknown]] : [];
  }),
);

const shapeOf = (text: string): number[] => {
  if (text === "scalar") return [];
  const sizes = text.split("x").map(Number);
  if (!/^\d+(x\d+)*$/.test(text) || !sizes.every(Number.isSafeInteger))
    throw new ArgumentError(
      `--shapes: "${text}" is not a shape; write the sizes of each operand as 128x256, with commas between operands, or scalar`,
    );
  return sizes;
};

const dtypesOf = (text: string, shapes: readonly (readonly number[])[]): DType[] => {
  const names = text.split(",");
  for (const name of names)
    if (!(dtypes as readonly string[]).includes(name))
      throw new ArgumentError(`--dtypes: "${name}" is not a storage type; use one of ${dtypes.join(", ")}`);
  if (names.length !== 1 && names.length !== shapes.length)
    throw new ArgumentError(
      `--dtypes names ${names.length} types for ${shapes.length} operands (${shapes.map(formatShape).join(", ")}); name one per operand, or one for all`,
    );
  return shapes.map((_, i) => (names[i] ?? names[0]) as DType);
};

const restOf = (text: string): readonly unknown[] => {
  let rest: unknown;
  try {
    rest = JSON.parse(text);
  } catch {
    throw new ArgumentError(`--with: ${text} is not JSON; write options as '{"causal":true}', or a list as '[10]'`);
  }
  if (typeof rest !== "object" || rest === null)
    throw new ArgumentError(`--with: ${text} is neither an object of options nor a list; write '[${text}]'`);
  return Array.isArray(rest) ? rest : [rest];
};

/** Builds the call from the command-line options. @throws ArgumentError if an option is invalid. */
export const callOf = (name: string, options: CallOptions): Call => {
  const operator = callable.has(name) ? name : [...callable.keys()].find((key) => camelCase(key) === name);
  const fn = operator === undefined ? undefined : callable.get(operator);
  if (fn === undefined)
    throw new ArgumentError(`there is no tensor function "${name}"; use one of ${[...callable.keys()].join(", ")}`);
  if (options.shapes === undefined)
    throw new ArgumentError(`${name} needs --shapes, one per operand, as in --shapes 128x256,256x64`);
  const shapes = options.shapes.split(",").map(shapeOf);
  const operandTypes = dtypesOf(options.dtypes, shapes);
  const rest = options.with === undefined ? [] : restOf(options.with);
  return {
    name,
    fn: (...tensors) => fn(...tensors, ...rest),
    specs: shapes.map((shape, i) => ({ shape, dtype: operandTypes[i]! })),
    gradient: options.gradient ?? false,
  };
};
