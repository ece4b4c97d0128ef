import type { Decoding } from "@skein/data";
import type { DataJob, DecodedJob } from "./job.ts";

/** Whether the data are images that are decoded from files. */
export const isDecoded = (data: DataJob): data is DecodedJob => "skipDamaged" in data && "channels" in data;

/** `fit` of a job that does not give it. */
const defaultFit = "cover";

/** Decoding options of a job, with defaults filled in. */
export const decodingOf = ({
  fit = defaultFit,
  resize,
  resample,
}: Pick<DecodedJob, "fit" | "resize" | "resample">): Pick<Decoding, "fit" | "resize" | "resample"> => ({
  fit,
  resize,
  resample: resample === "decoder" ? undefined : resample,
});

/**
 * Data as they enter the hash of a job: with the default of `fit`, at the position among the keys where earlier
 * versions filled it in when a job was read, so that runs of earlier versions can be resumed.
 */
export const hashedData = (data: DataJob): object => {
  if (!isDecoded(data)) return data;
  const { fit, resample } = decodingOf(data);
  return Object.fromEntries(
    Object.entries({ ...data, resample }).flatMap(([key, value]) => {
      if (key === "channels") return [[key, value] as const, ["fit", fit] as const];
      return key === "fit" ? [] : [[key, value] as const];
    }),
  );
};
