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
 * Rules that assign operators to stages of a second-order step, by operator scope. Communication is all time that a
 * rank's main thread spends on messages: packing, starting, waiting and unpacking.
 */
export const stageRules: readonly (StageRule & { readonly stage: Stage })[] = [
  { stage: "factorCommunication", matches: "statistics-\\d" },
  { stage: "factors", matches: "statistics/" },
  { stage: "inverseCommunication", matches: "(inverses|bases)-\\d" },
  // The bases of SOAP have no scope, but no other update uses these two operators.
  { stage: "inverses", matches: "inverse/|^compute update (eigh|qr)\\b" },
  { stage: "preconditionedCommunication", matches: "(preconditioned|orthogonal)-\\d" },
  { stage: "precondition", matches: "precondition/" },
  { stage: "gradientCommunication", matches: "exchange-\\d" },
  { stage: "passes", matches: "^compute (forward|backward)" },
  { stage: "update", matches: "^compute update" },
];
