import { conservationLaws } from "./conservation.ts";
import { descentLaws } from "./descent.ts";
import { drawLaws } from "./draws.ts";
import { hardValueLaws } from "./hard-values.ts";
import type { Law } from "./law.ts";
import { payloadLaws } from "./payload.ts";
import { structureLaws } from "./structure.ts";
import { symmetryLaws } from "./symmetries.ts";

export const laws: readonly Law[] = [
  ...structureLaws,
  ...conservationLaws,
  ...symmetryLaws,
  ...hardValueLaws,
  ...drawLaws,
  ...payloadLaws,
  ...descentLaws,
];
