import {
  type AuxiliaryLoss,
  balanceLoss,
  balancingBiasGate,
  cosineGate,
  expertChoiceGate,
  type Gate,
  importanceLoadLoss,
  noisyTopKGate,
  sigmoidGate,
  sinkhornGate,
  softGate,
  switchGate,
  zLoss,
} from "../src/index.ts";

export interface GateSizes {
  readonly width: number;
  readonly numExperts: number;
}

export interface GateRow {
  readonly name: string;
  readonly gate: (sizes: GateSizes) => Gate;
  /** Whether a token's result is independent of all other tokens and of random numbers. */
  readonly perToken: boolean;
  /** Whether the weights of a token sum to at most 1. */
  readonly sharesOfOne: boolean;
}

const losses: readonly AuxiliaryLoss[] = [
  balanceLoss({ coefficient: 0.5 }),
  balanceLoss({ coefficient: 0.25, choices: "first" }),
  importanceLoadLoss({ coefficient: 0.5 }),
  zLoss({ coefficient: 0.5 }),
];

interface Facts {
  readonly perToken?: boolean;
  readonly sharesOfOne?: boolean;
}

const row = <P, S>(
  name: string,
  gate: (sizes: GateSizes) => Gate<P, S>,
  { perToken = true, sharesOfOne = true }: Facts = {},
): GateRow => ({ name, gate: (sizes) => gate(sizes) as Gate, perToken, sharesOfOne });

/** All gates, each with settings that cover its different code paths. A row needs at least two experts. */
export const gateRows: readonly GateRow[] = [
  row("switchGate", (sizes) => switchGate({ ...sizes, losses })),
  row("switchGate with two choices", (sizes) => switchGate({ ...sizes, numChoices: 2, losses })),
  row("switchGate with jitter", (sizes) => switchGate({ ...sizes, jitter: 0.3 }), { perToken: false }),
  row("noisyTopKGate without noise", (sizes) => noisyTopKGate({ ...sizes, numChoices: 2, noise: "none", losses })),
  row("noisyTopKGate of all experts", (sizes) =>
    noisyTopKGate({ ...sizes, numChoices: sizes.numExperts, noise: "none", losses }),
  ),
  row("noisyTopKGate", (sizes) => noisyTopKGate({ ...sizes, numChoices: 2 }), { perToken: false }),
  row("noisyTopKGate with fixed noise", (sizes) => noisyTopKGate({ ...sizes, numChoices: 2, noise: 0.25 }), {
    perToken: false,
  }),
  row("sigmoidGate", (sizes) => sigmoidGate({ ...sizes, numChoices: 2, losses }), { sharesOfOne: false }),
  row("sigmoidGate with one choice", (sizes) => sigmoidGate({ ...sizes, numChoices: 1 })),
  row("cosineGate", (sizes) => cosineGate({ ...sizes, numChoices: 2, projection: 5, losses })),
  row("expertChoiceGate", (sizes) => expertChoiceGate(sizes), { perToken: false }),
  row("balancingBiasGate", (sizes) => balancingBiasGate({ ...sizes, numChoices: 2, updateRate: 0.01, losses })),
  row("sinkhornGate", (sizes) => sinkhornGate({ ...sizes, numChoices: 2 }), { perToken: false }),
  row("sinkhornGate with one choice", (sizes) => sinkhornGate({ ...sizes, numChoices: 1 }), { perToken: false }),
  row("softGate", (sizes) => softGate({ ...sizes, slots: 2 }), { perToken: false }),
];
