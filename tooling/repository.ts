import { join } from "node:path";

/** Root folder of the repository. */
export const repository: string = join(import.meta.dirname, "..");
