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
 * The stages of a step with second-order work, by the scopes that its operators have. Communication is all that a
 * rank's own thread spends on messages: to pack and start them, to wait for them, to unpack them.
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
