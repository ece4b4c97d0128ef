import { fitCollectiveModel } from "@skein/cost-model/calibration";
import type { LinearCollectiveModel } from "@skein/cost-model";
import { everyRankAxis, meshOf } from "@skein/job/node";
import { type Agree, agreement } from "./agree.ts";
import { type MeasuredCollective, measureCollectives } from "./measure-collectives.ts";
import type { ProfileInput } from "./profile-steps.ts";

/** Maximum size in bytes of a measured all-to-all. */
const maxBytes = 1_048_576;

/**
 * Measures a collective along an axis, and fits a linear model: seconds by bytes. All ranks use the measurements of
 * rank 0. Must be called on all ranks.
 */
export const agreedModel = async (
  kind: MeasuredCollective,
  axis: string,
  options: Omit<Parameters<typeof measureCollectives>[2], "atOnce">,
  agree: Agree,
): Promise<LinearCollectiveModel> => {
  const fitted = fitCollectiveModel(await measureCollectives(kind, axis, options));
  const [startupSeconds, secondsPerByte] = await agree([fitted.startupSeconds, fitted.secondsPerByte]);
  return { startupSeconds: startupSeconds!, secondsPerByte: secondsPerByte! };
};

/**
 * Measures the all-to-alls of the token exchange, among the ranks along each axis. All ranks use the measurements of
 * rank 0. Must be called on all ranks.
 *
 * @returns a model per axis: seconds of an all-to-all by bytes on each rank.
 */
export const measureAllToAlls = async (
  { job, backend, communicators }: Pick<ProfileInput, "job" | "backend" | "communicators">,
  axes: readonly string[],
): Promise<LinearCollectiveModel[]> => {
  const agree = agreement(backend, communicators, everyRankAxis(meshOf(job)));
  try {
    const lines: LinearCollectiveModel[] = [];
    for (const axis of axes)
      lines.push(await agreedModel("all-to-all", axis, { backend, communicators, maxBytes }, agree));
    return lines;
  } finally {
    agree.release();
  }
};
