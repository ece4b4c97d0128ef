import { join } from "node:path";

/** The repository's root folder. */
export const repository: string = join(import.meta.dirname, "..");
