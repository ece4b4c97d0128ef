import { comparisonFunctions } from "./comparisons.ts";
import { conversionFunctions } from "./conversions.ts";
import { errorFunctions } from "./error-function.ts";
import { exponentialFunctions } from "./exponential.ts";
import { powerFunctions } from "./power.ts";
import { roundingFunctions } from "./rounding.ts";
import { trigonometricFunctions } from "./trigonometric.ts";
import { vectorFunctions } from "./vectors.ts";

/**
 * Compilers simplify `(a + b) - a` and join `n·c + n·d`, both of which are how lost digits are saved (Mesa does on
 * every driver, Metal in fast math). A value that went through bits they know nothing about is settled.
 */
const settled =
  "fn settled(x: vec4<f32>) -> vec4<f32> { return bitcast<vec4<f32>>(bitcast<vec4<u32>>(x) | vec4<u32>(sizes.never)); }";

/** Every WGSL function on vectors of four by name. Some read `sizes.never`, see `functionsFor`. */
export const functions: { readonly [name: string]: string } = {
  settled,
  ...comparisonFunctions,
  ...conversionFunctions,
  ...errorFunctions,
  ...exponentialFunctions,
  ...powerFunctions,
  ...roundingFunctions,
  ...trigonometricFunctions,
  ...vectorFunctions,
};

const called = (code: string): string[] =>
  [...code.matchAll(/\b(\w+)\(/g)].map((match) => match[1]!).filter((name) => Object.hasOwn(functions, name));

/**
 * The functions that `code` calls, and those that they call. The shader's `sizes` must have a field `never`, which is 0
 * and which no compiler knows to be.
 */
export const functionsFor = (code: string): string => {
  const wanted = new Set<string>();
  const want = (text: string): void => {
    for (const name of called(text)) {
      if (wanted.has(name)) continue;
      wanted.add(name);
      want(functions[name]!);
    }
  };
  want(code);
  return [...wanted].map((name) => functions[name]!).join("\n");
};
