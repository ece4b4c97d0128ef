import type { Attack } from "./attack.ts";
import { flip } from "./flip.ts";
import { hostileFiles } from "./hostile-files.ts";
import { kill } from "./kill.ts";
import { tear } from "./tear.ts";

/** All attacks. Each is one file of this folder. */
export const attacks: readonly Attack[] = [hostileFiles, flip, tear, kill];
