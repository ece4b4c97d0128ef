import { fitCollectiveModel, type LinearCollectiveModel } from "@skein/cost-model";
import { everyRankAxis, meshOf } from "../job/mesh.ts";
import { type Agree, agreement } from "./agree.ts";
import { type MeasuredCollective, measureCollectives } from "./measure-collectives.ts";
import type { ProfileInput } from "./profile-steps.ts";

/** Most bytes of an all-to-all that is timed. */
const mostBytes = 1_048_576;

/**
 * Time a collective along an axis, by its bytes. Ranks agree on what rank 0 has measured. All ranks call it together.
 */
export const agreedLine = async (
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
 * Time the all-to-alls by which tokens travel to their experts, among the ranks along each axis. Ranks agree on what
 * rank 0 has measured. All ranks call it together.
 *
 * @returns of each axis, seconds of an all-to-all of so many bytes that each rank has.
 */
export const measureAllToAlls = async (
  { job, backend, communicators }: Pick<ProfileInput, "job" | "backend" | "communicators">,
  axes: readonly string[],
): Promise<LinearCollectiveModel[]> => {
  const agree = agreement(backend, communicators, everyRankAxis(meshOf(job)));
  try {
    const lines: LinearCollectiveModel[] = [];
    for (const axis of axes)
      lines.push(await agreedLine("all-to-all", axis, { backend, communicators, mostBytes }, agree));
    return lines;
  } finally {
    agree.release();
  }
};
