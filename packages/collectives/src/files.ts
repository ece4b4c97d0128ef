// Entry point for code that opens files which other users may have written. Loads only this part of the package.
export { openRegularFile, type RegularFile } from "./security/open-regular-file.ts";
export type { BoundedFile } from "./security/read-bounded-file.ts";
export { readTextFile } from "./security/read-text-file.ts";
