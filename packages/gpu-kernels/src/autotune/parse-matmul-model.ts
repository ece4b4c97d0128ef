import { ArgumentError } from "@skein/tensor-core";
// The mini entry point of zod adds 6 KB (gzip) to a page, the full entry point 93 KB.
import {
  array,
  boolean,
  enum as oneOf,
  exactOptional,
  gte,
  int,
  literal,
  lte,
  minLength,
  number,
  safeParse,
  string,
  strictObject,
} from "zod/mini";
import type { ZodMiniType } from "zod/mini";
import type { MatmulModel } from "./matmul-model.ts";

const size = int().check(gte(0));
const name = string().check(minLength(1));
const quality = strictObject({ accuracy: number().check(gte(0), lte(1)), regret: number().check(gte(0)) });

const matmulModelSchema: ZodMiniType<MatmulModel> = strictObject({
  version: literal(2),
  adapter: string(),
  fallback: name,
  products: array(
    strictObject({
      request: strictObject({
        batch: size,
        rows: size,
        columns: size,
        inner: size,
        transposeA: boolean(),
        transposeB: boolean(),
        dtype: oneOf(["f32", "f16"]),
      }),
      fastest: array(name).check(minLength(1)),
    }),
  ),
  samples: size,
  heldOut: exactOptional(quality),
  fallbackQuality: quality,
});

const refuse = (problem: string): ArgumentError =>
  new ArgumentError(
    `the stored value is not a matmul model of version 2 (${problem}); delete it and measure the device again`,
  );

/** Throws ArgumentError with the first invalid field if `value` is not a model. */
export const parseMatmulModel = (value: unknown): MatmulModel => {
  const parsed = safeParse(matmulModelSchema, value);
  if (parsed.success) return parsed.data;
  const { path, message } = parsed.error.issues[0]!;
  throw refuse(`${path.length === 0 ? "all of it" : path.join(".")}: ${message}`);
};

/** Parses the text of a stored model. Throws ArgumentError if the text is not a complete model. */
export const readMatmulModel = (text: string): MatmulModel => {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw refuse((error as Error).message.replaceAll(/\s+/g, " "));
  }
  return parseMatmulModel(value);
};
