import { ArgumentError, foldIn, type Tensor } from "@skein/tensor-core";
import type { EncodeContext } from "./context.ts";

/** A key of this rank alone. @throws ArgumentError when the context has none. */
export const ownKey = (name: string, { key, rank }: EncodeContext = {}): Tensor => {
  if (key === undefined || rank === undefined)
    throw new ArgumentError(
      `${name} rounds at random, but was given no key; pass exchange a key that is fresh in every step`,
    );
  return foldIn(key, rank);
};
