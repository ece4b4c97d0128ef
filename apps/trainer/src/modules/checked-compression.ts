import { ModuleError } from "@skein/cli/node";
import { type Aggregator, type Codec, defineCompressor, lengthOf } from "@skein/compressors";
import { Tensor } from "@skein/tensor-core";
import { excerpt } from "@skein/tensor-core/backend";
import type { Origin } from "./checked-optimizer.ts";
import { requireLike, requireTensors } from "./checked-tree.ts";
import { callOwn } from "./user-error.ts";

const facts = (given: Partial<Aggregator>): readonly (readonly [name: string, is: boolean, rule: string])[] => [
  ["init", typeof given.init === "function", "a function of a bucket"],
  ["aggregate", typeof given.aggregate === "function", "a function of gradient, state, bucket and context"],
  ["bytesSent", typeof given.bytesSent === "function", "a function of a bucket and the number of ranks"],
  ["biased", typeof given.biased === "boolean", "true or false"],
  ["scope", given.scope === "tensor" || given.scope === "bucket", "tensor or bucket"],
];

/**
 * Checks a user-defined gradient exchange, an aggregator or a codec, when it is traced. The payloads of a codec are
 * added or gathered, as the codec declares.
 *
 * @returns an aggregator. A codec is converted to an aggregator.
 * @throws ModuleError if the value is neither an aggregator nor a codec.
 */
export const checkedCompression = (made: unknown, { what, folder }: Origin): Aggregator => {
  const rule = "an Aggregator or a Codec of @skein/compressors, such as the result of defineCompressor()";
  if (typeof made !== "object" || made === null)
    throw new ModuleError(`${what} returned ${excerpt(made)}, but must return ${rule}`);
  const isCodec = "encode" in made && "decode" in made && !("aggregate" in made);
  const own = (isCodec ? defineCompressor(made as Codec) : made) as Aggregator;
  for (const [name, is, wanted] of facts(own))
    if (!is)
      throw new ModuleError(
        `${what}: its ${name} is ${excerpt((own as unknown as Readonly<Record<string, unknown>>)[name])}, but must be ${wanted}; give ${rule}`,
      );
  const inside = <T>(name: string, fn: () => T): T => callOwn(`${what}: ${name}`, folder, fn);
  return {
    ...(own.name !== undefined && { name: own.name }),
    biased: own.biased,
    scope: own.scope,
    ...(own.contraction !== undefined && {
      contraction: (bucket, worldSize) => inside("contraction", () => own.contraction!(bucket, worldSize)),
    }),
    bytesSent: (bucket, worldSize) => inside("bytesSent", () => own.bytesSent(bucket, worldSize)),
    init: (bucket) => {
      const state = inside("init", () => own.init(bucket));
      requireTensors(state, `${what}: init`);
      return state;
    },
    aggregate: (gradient, state, bucket, context) => {
      const after = inside("aggregate", () => own.aggregate(gradient, state, bucket, context));
      for (const name of ["mean", "sent"] as const) {
        const one: unknown = (after as Partial<typeof after> | undefined)?.[name];
        if (!(one instanceof Tensor) || one.dtype !== "f32" || one.rank !== 1 || one.shape[0] !== lengthOf(bucket))
          throw new ModuleError(
            `${what}: aggregate returned as ${name} ${one instanceof Tensor ? `${one.dtype}[${one.shape.join(", ")}]` : excerpt(one)}, but must return { mean, sent, state }, the first two f32[${lengthOf(bucket)}] like the gradient`,
          );
      }
      requireLike(after.state, state, { what: `${what}: aggregate`, like: "the state that it was given" });
      return after;
    },
  };
};
