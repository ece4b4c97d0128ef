import { comparisonFunctions } from "./comparisons.ts";
import { conversionFunctions } from "./conversions.ts";
import { errorFunctions } from "./error-function.ts";
import { exponentialFunctions } from "./exponential.ts";
import { powerFunctions } from "./power.ts";
import { roundingFunctions } from "./rounding.ts";
import { trigonometricFunctions } from "./trigonometric.ts";
import { vectorFunctions } from "./vectors.ts";

/**
 * Returns WGSL that hides a value from simplification. Compilers simplify `(a + b) - a` and combine `n·c + n·d`, which
 * breaks compensated arithmetic (Mesa on every driver, Metal in fast math). A value that passes through bits that are
 * unknown to the compiler cannot be simplified.
 */
const settled =
  "fn settled(x: vec4<f32>) -> vec4<f32> { return bitcast<vec4<f32>>(bitcast<vec4<u32>>(x) | vec4<u32>(sizes.never)); }";

/**
 * WGSL of all functions on vectors of four, by function name. Some functions read `sizes.never`; see `functionsFor`.
 */
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
 * Returns the WGSL of the functions that `code` calls, directly or indirectly. The shader's `sizes` must have a field
 * `never` with value 0, which compilers cannot know.
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
