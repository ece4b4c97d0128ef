import { describe } from "../describe.ts";
import { ArrayStateError } from "../errors.ts";

/** What a backend throws for an array that it did not make. */
export const foreignArray = (array: unknown): ArrayStateError =>
  new ArrayStateError(
    `${describe(array)} is no array of this backend; give it an NdArray or what it made itself, and bring an array of another backend here by download and upload`,
  );
