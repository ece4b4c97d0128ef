import type { StageRule } from "../studies/stage-times.ts";

export type Stage =
  | "passes"
  | "factors"
  | "factorCommunication"
  | "inverses"
  | "inverseCommunication"
  | "precondition"
  | "preconditionedCommunication"
  | "gradientCommunication"
  | "update"
  | "rest";

/**
 * Stages of a step with second-order work, by the scopes of operators. Communication is all time that a rank's own
 * thread spends on messages: packing, starting, waiting and unpacking.
 */
export const stageRules: readonly (StageRule & { readonly stage: Stage })[] = [
  { stage: "factorCommunication", matches: "statistics-\\d" },
  { stage: "factors", matches: "statistics/" },
  { stage: "inverseCommunication", matches: "(inverses|bases)-\\d" },
  // Bases of SOAP have no scope; no other update of a job has these two operators.
  { stage: "inverses", matches: "inverse/|^compute update (eigh|qr)\\b" },
  { stage: "preconditionedCommunication", matches: "(preconditioned|orthogonal)-\\d" },
  { stage: "precondition", matches: "precondition/" },
  { stage: "gradientCommunication", matches: "exchange-\\d" },
  { stage: "passes", matches: "^compute (forward|backward)" },
  { stage: "update", matches: "^compute update" },
];
