import type { Decoding } from "@skein/data";
import type { DataJob, DecodedJob } from "./job.ts";

/** Whether the data consists of images that are decoded from files. */
export const isDecoded = (data: DataJob): data is DecodedJob => "skipDamaged" in data && "channels" in data;

/** Default of the image option `fit`. */
const defaultFit = "cover";

/** Returns the decoding options of a job, with defaults filled in. */
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
 * Returns the data settings that enter the hash of a job. The hash depends on the order of keys, so `fit` is inserted
 * after `channels`, as in earlier versions. Otherwise, runs of earlier versions could not be resumed.
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
