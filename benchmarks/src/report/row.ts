import type { Summary } from "@skein/measuring";

/**
 * Row of a results table, which compares Skein's measurement with the measurement of one peer. A `ratio` above 1 means
 * that Skein is better, for any unit.
 */
export interface Row {
  readonly benchmark: string;
  readonly unit: string;
  readonly ours: number | null;
  readonly peer: string;
  readonly peerValue: number | null;
  readonly ratio: number | null;
  /** Median absolute deviation in the row's unit, followed by the number of samples. */
  readonly oursSpread?: number;
  readonly oursSamples?: number;
  readonly peerSpread?: number;
  readonly peerSamples?: number;
  /** Required minimum of `ratio`, the ratio of Skein's performance to the peer's. Absent: no requirement. */
  readonly target?: number;
  /** Reason why a value is missing, or a limitation of the value. */
  readonly note?: string;
}

export interface RowOptions {
  readonly benchmark: string;
  readonly unit: string;
  readonly better: "higher" | "lower";
  readonly peer: string;
  readonly ours?: Summary | undefined;
  readonly theirs?: Summary | undefined;
  readonly target?: number | undefined;
  readonly note?: string | undefined;
}

/** Creates a row from two measurements, either of which may be missing. */
export const makeRow = ({ benchmark, unit, better, peer, ours, theirs, target, note }: RowOptions): Row => {
  const ratio =
    ours && theirs ? (better === "lower" ? theirs.median / ours.median : ours.median / theirs.median) : null;
  return {
    benchmark,
    unit,
    ours: ours?.median ?? null,
    peer,
    peerValue: theirs?.median ?? null,
    ratio,
    ...(ours && { oursSpread: ours.mad, oursSamples: ours.n }),
    ...(theirs && { peerSpread: theirs.mad, peerSamples: theirs.n }),
    ...(target !== undefined && { target }),
    ...(note !== undefined && { note }),
  };
};
