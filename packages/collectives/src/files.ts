// For who opens files that others may have put there; it loads nothing of collectives.
export { openRegularFile, type RegularFile } from "./security/open-regular-file.ts";
export { type BoundedFile, readBoundedFile } from "./security/read-bounded-file.ts";
export { readTextFile } from "./security/read-text-file.ts";
