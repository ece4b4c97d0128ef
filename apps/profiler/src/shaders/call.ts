import * as functions from "@skein/tensor-core";
import { ArgumentError, type DType, dtypes, formatShape, type Tensor, type TensorSpec } from "@skein/tensor-core";
import { operators } from "@skein/tensor-core/backend";

export interface CallOptions {
  /** `128x256,256x64`; a scalar is `scalar`. */
  readonly shapes?: string;
  /** One for each operand, or one for all. */
  readonly dtypes: string;
  /** JSON of what the function takes after its tensors: an object of options, or a list. */
  readonly with?: string;
  /** Also what its gradients take. */
  readonly gradient?: boolean;
}

/** A function of tensors, and what it is called with. */
export interface Call {
  readonly name: string;
  readonly fn: (...tensors: Tensor[]) => unknown;
  readonly specs: readonly TensorSpec[];
  readonly gradient: boolean;
}

const camelCase = (name: string): string => name.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());

/** Functions that are an operator each, by the operator's name. */
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
      `--shapes: "${text}" is no shape; write the sizes of each operand as 128x256, with commas between operands, or scalar`,
    );
  return sizes;
};

const dtypesOf = (text: string, shapes: readonly (readonly number[])[]): DType[] => {
  const names = text.split(",");
  for (const name of names)
    if (!(dtypes as readonly string[]).includes(name))
      throw new ArgumentError(`--dtypes: "${name}" is no storage type; there are ${dtypes.join(", ")}`);
  if (names.length !== 1 && names.length !== shapes.length)
    throw new ArgumentError(
      `--dtypes names ${names.length} for ${shapes.length} operands (${shapes.map(formatShape).join(", ")}); name one for each, or one for all`,
    );
  return shapes.map((_, i) => (names[i] ?? names[0]) as DType);
};

const restOf = (text: string): readonly unknown[] => {
  let rest: unknown;
  try {
    rest = JSON.parse(text);
  } catch {
    throw new ArgumentError(`--with: ${text} is no JSON; write options as '{"causal":true}', or a list as '[10]'`);
  }
  if (typeof rest !== "object" || rest === null)
    throw new ArgumentError(`--with: ${text} is neither an object of options nor a list; write '[${text}]'`);
  return Array.isArray(rest) ? rest : [rest];
};

/** What a command line asks for. @throws ArgumentError for what it cannot mean. */
export const callOf = (name: string, options: CallOptions): Call => {
  const operator = callable.has(name) ? name : [...callable.keys()].find((key) => camelCase(key) === name);
  const fn = operator === undefined ? undefined : callable.get(operator);
  if (fn === undefined)
    throw new ArgumentError(`there is no function of tensors "${name}"; there are ${[...callable.keys()].join(", ")}`);
  if (options.shapes === undefined)
    throw new ArgumentError(`${name} needs --shapes, one for each operand, as in --shapes 128x256,256x64`);
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
