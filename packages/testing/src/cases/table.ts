import type { ConformanceCase } from "../conformance-case.ts";
import { attentionCases } from "./attention.ts";
import { bitsCases } from "./bits.ts";
import { convolutionCases } from "./convolution.ts";
import { decompositionCases } from "./decomposition.ts";
import { dynamicSliceCases } from "./dynamic-slice.ts";
import { elementwiseCases } from "./elementwise.ts";
import { fusedCases } from "./fused.ts";
import { groupedCases } from "./grouped.ts";
import { halfRows, wideResultRows } from "./half.ts";
import { hardGradientCases } from "./hard-gradients.ts";
import { histogramCases } from "./histogram.ts";
import { indexingCases } from "./indexing.ts";
import { linearCases } from "./linear.ts";
import { movementCases } from "./movement.ts";
import { normalisationCases } from "./normalisation.ts";
import { poolingCases } from "./pooling.ts";
import { randomCases } from "./random.ts";
import { reduceCases } from "./reduce.ts";
import { wideCases } from "./wide.ts";

/** All conformance cases. Each operator family has one file of cases. */
export const conformanceCases: readonly ConformanceCase[] = [
  ...attentionCases,
  ...bitsCases,
  ...convolutionCases,
  ...decompositionCases,
  ...dynamicSliceCases,
  ...elementwiseCases,
  ...fusedCases,
  ...(["f16", "bf16"] as const).flatMap((dtype) =>
    halfRows([...attentionCases, ...convolutionCases, ...linearCases], dtype),
  ),
  ...wideResultRows,
  ...groupedCases,
  ...hardGradientCases,
  ...histogramCases,
  ...indexingCases,
  ...linearCases,
  ...movementCases,
  ...normalisationCases,
  ...poolingCases,
  ...randomCases,
  ...reduceCases,
  ...wideCases,
];
