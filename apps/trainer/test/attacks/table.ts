import type { Attack } from "./attack.ts";
import { flip } from "./flip.ts";
import { flood } from "./flood.ts";
import { hostileFiles } from "./hostile-files.ts";
import { hostileRuns } from "./hostile-runs.ts";
import { kill } from "./kill.ts";
import { manInTheMiddle } from "./man-in-the-middle.ts";
import { pause } from "./pause.ts";
import { replay } from "./replay.ts";
import { tear } from "./tear.ts";

/** All attacks. Each is one file of this folder. */
export const attacks: readonly Attack[] = [
  hostileFiles,
  hostileRuns,
  flip,
  tear,
  kill,
  pause,
  flood,
  replay,
  manInTheMiddle,
];
