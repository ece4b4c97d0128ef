import type { Attack } from "./attack.ts";
import { flip } from "./flip.ts";
import { flood } from "./flood.ts";
import { hostileFiles } from "./hostile-files.ts";
import { hostileRunFolders } from "./hostile-run-folders.ts";
import { hostileRuns } from "./hostile-runs.ts";
import { kill } from "./kill.ts";
import { manInTheMiddle } from "./man-in-the-middle.ts";
import { orphans } from "./orphans.ts";
import { pause } from "./pause.ts";
import { replay } from "./replay.ts";
import { signalsToAll } from "./signals.ts";
import { tear } from "./tear.ts";
import { twoWriters } from "./two-writers.ts";

/** All attacks. Each attack is defined in one file of this folder. */
export const attacks: readonly Attack[] = [
  hostileFiles,
  hostileRunFolders,
  hostileRuns,
  flip,
  tear,
  kill,
  signalsToAll,
  orphans,
  pause,
  flood,
  replay,
  manInTheMiddle,
  twoWriters,
];
