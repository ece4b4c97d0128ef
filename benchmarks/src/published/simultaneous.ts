import {
  type GradientProfile,
  type LinearCollectiveModel,
  onePerTensor,
  simultaneousTimeline,
  timelineOf,
  twoAtOnce,
} from "@skein/cost-model";
import { planMgWfbp, planSimultaneous } from "@skein/cost-model/planners";
import { publishedLinks } from "@skein/published-measurements";
import { type Architecture, profileOf } from "./architectures.ts";

/** Exposed communication in seconds per iteration, by method. */
export interface Exposed {
  readonly waitFree: number;
  readonly merged: number;
  readonly simultaneous: number;
}

export interface SimultaneousRow {
  readonly model: string;
  /** Seconds of forward and backward pass. */
  readonly computeSeconds: number;
  readonly exposed: Exposed;
}

/**
 * Compute time and exposed communication by WFBP, MG-WFBP and ASC-WFBP, on a link of 9.43 Gbit/s. The source does not
 * state the number of GPUs.
 *
 * Source: a plotting script of the authors of ASC-WFBP (Shi, Chu and Li, INFOCOM 2021).
 */
export const simultaneousRows: readonly SimultaneousRow[] = [
  { model: "ResNet-152", computeSeconds: 0.2737, exposed: { waitFree: 0.6822, merged: 0.4361, simultaneous: 0.2506 } },
  {
    model: "DenseNet-201",
    computeSeconds: 0.2189,
    exposed: { waitFree: 0.5593, merged: 0.1563, simultaneous: 0.0948 },
  },
  {
    model: "Inception-v4",
    computeSeconds: 0.1895,
    exposed: { waitFree: 0.5291, merged: 0.3204, simultaneous: 0.1876 },
  },
  { model: "BERT-Base", computeSeconds: 0.3055, exposed: { waitFree: 0.7047, merged: 0.7569, simultaneous: 0.6187 } },
];

/** Models of the table whose tensor shapes are known. */
export const simultaneousModels: readonly Architecture[] = ["ResNet-152", "BERT-Base"];

/**
 * Cost model of a ring all-reduce over 16 ranks. The startup time is the one published for 10 Gbit/s Ethernet, and 2 ·
 * 15/16 of the bytes are sent at 9.43 Gbit/s. No parameter is fitted.
 */
const link: LinearCollectiveModel = {
  startupSeconds: publishedLinks.find(({ network, worldSize }) => network === "10 Gbit/s Ethernet" && worldSize === 16)!
    .startupSeconds,
  secondsPerByte: ((2 * 15) / 16) * (8 / 9.43e9),
};

const profileWithin = (model: Architecture, computeSeconds: number): GradientProfile =>
  profileOf(model, (2 / 3) * computeSeconds, computeSeconds / 3);

/**
 * Predicts the exposed communication of WFBP and MG-WFBP. The backward pass is assumed to take two thirds of the
 * compute time.
 */
export const predictInTurn = (model: Architecture, computeSeconds: number): Omit<Exposed, "simultaneous"> => {
  const profile = profileWithin(model, computeSeconds);
  return {
    waitFree: timelineOf(profile, onePerTensor(profile), link).exposedSeconds,
    merged: timelineOf(profile, planMgWfbp(profile, link), link).exposedSeconds,
  };
};

/**
 * Predicts the exposed communication of ASC-WFBP, with two simultaneous collectives. Takes seconds for models with
 * hundreds of tensors.
 */
export const predictSimultaneous = (model: Architecture, computeSeconds: number): number => {
  const profile = profileWithin(model, computeSeconds);
  return simultaneousTimeline(profile, planSimultaneous(profile, link, twoAtOnce), link, twoAtOnce).exposedSeconds;
};
