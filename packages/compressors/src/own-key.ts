import { ArgumentError, foldIn, type Tensor } from "@skein/tensor-core";
import type { EncodeContext } from "./context.ts";

/** Derives a random key for this rank. Throws ArgumentError if the context has no key. */
export const ownKey = (name: string, { key, rank }: EncodeContext = {}): Tensor => {
  if (key === undefined || rank === undefined)
    throw new ArgumentError(
      `${name} draws random numbers, but no key was given; pass exchange a new key in every step`,
    );
  return foldIn(key, rank);
};
