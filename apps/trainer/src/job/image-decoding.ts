import type { Decoding } from "@skein/data";
import type { DataJob, DecodedJob } from "./job.ts";

/** Whether data are images that are decoded from files. */
export const isDecoded = (data: DataJob): data is DecodedJob => "skipDamaged" in data && "channels" in data;

/** Where a job says nothing. */
const defaultFit = "cover";

/** How images of a job become samples, with what it leaves out filled in. */
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
 * Data as the hash of a job knows it: with the default of `fit`, at the place where it was written when it was still
 * filled in as a job was read, so that runs of that time go on.
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
