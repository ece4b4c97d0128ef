import { fitCollectiveModel, type LinearCollectiveModel } from "@skein/cost-model";
import { everyRankAxis, expertAxis } from "../mesh.ts";
import { agreement } from "./agree.ts";
import { measureCollectives } from "./measure-collectives.ts";
import type { ProfileInput } from "./profile-steps.ts";

/** Most bytes of an all-to-all that is timed. */
const mostBytes = 1_048_576;

/**
 * Time the all-to-all by which tokens travel to their experts, among the ranks that share these out. Ranks agree on
 * what rank 0 has measured. All ranks call it together.
 *
 * @returns seconds of an all-to-all of so many bytes that each rank has.
 */
export const measureExpertExchange = async ({
  parts,
  backend,
  communicators,
}: Pick<ProfileInput, "parts" | "backend" | "communicators">): Promise<LinearCollectiveModel> => {
  const agree = agreement(backend, communicators, everyRankAxis(parts.mesh));
  try {
    const samples = await measureCollectives("all-to-all", expertAxis, { backend, communicators, mostBytes });
    const fitted = fitCollectiveModel(samples);
    const [startupSeconds, secondsPerByte] = await agree([fitted.startupSeconds, fitted.secondsPerByte]);
    return { startupSeconds: startupSeconds!, secondsPerByte: secondsPerByte! };
  } finally {
    agree.release();
  }
};
