import { type Gate, switchGate } from "../src/index.ts";

export interface GateSizes {
  readonly width: number;
  readonly numExperts: number;
}

export interface GateRow {
  readonly name: string;
  readonly gate: (sizes: GateSizes) => Gate;
  /** What a token gets depends on no other token. */
  readonly perToken: boolean;
}

/** All gates, and settings of them that take other ways. They need two experts. */
export const gateRows: readonly GateRow[] = [
  { name: "switchGate", perToken: true, gate: (sizes) => switchGate(sizes) as Gate },
  { name: "switchGate with jitter", perToken: false, gate: (sizes) => switchGate({ ...sizes, jitter: 0.3 }) as Gate },
];
