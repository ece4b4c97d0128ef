import { describe } from "../describe.ts";
import { ArrayStateError } from "../errors.ts";

/** Creates the error for an array that belongs to another backend. */
export const foreignArray = (array: unknown): ArrayStateError =>
  new ArrayStateError(
    `${describe(array)} is not an array of this backend; pass an NdArray or an array that this backend created, and transfer an array of another backend by download and upload`,
  );
