import { sidesOf } from "../image-sides.ts";
import type { DataJob, Job } from "../job.ts";
import type { CrossFieldFault } from "./cross-field-fault.ts";

/** Returns the problems found in a job's image options. */
const imageFaults = (data: DataJob): CrossFieldFault[] => {
  const faults: CrossFieldFault[] = [];
  const fault = (path: readonly string[], rule: string): number => faults.push({ path: ["data", ...path], rule });
  const isStreamed = "stream" in data && data.stream !== undefined;
  if ("decodesAtOnce" in data && data.decodesAtOnce !== undefined && data.cacheMegabytes === undefined && !isStreamed)
    fault(
      ["decodesAtOnce"],
      `decodesAtOnce is ${data.decodesAtOnce}, which has no effect when all images are decoded before training; give cacheMegabytes, too, or leave decodesAtOnce out`,
    );
  if ("decodeSize" in data && data.decodeSize !== undefined) {
    const [size, decodeSize] = [sidesOf(data.size), sidesOf(data.decodeSize)];
    if (data.cacheMegabytes === undefined)
      fault(
        ["decodeSize"],
        "a decodeSize other than size needs decoding during training; give cacheMegabytes, too, or leave decodeSize out",
      );
    if (decodeSize.some((pixels, i) => pixels < size[i]!))
      fault(
        ["decodeSize"],
        `decodeSize ${decodeSize.join("×")} is smaller than size ${size.join("×")}, so images cannot be cropped to size; raise decodeSize, or leave it out`,
      );
  }
  if ("resize" in data && data.resize !== undefined) {
    const { fit, size, decodeSize = size, resize } = data;
    const [resized, least] = [sidesOf(resize), sidesOf(decodeSize)];
    const targetKey = decodeSize === size ? "size" : "decodeSize";
    if (fit !== undefined)
      fault(["resize"], `both resize and fit (${fit}) determine how images are resized; leave one out`);
    if (resized.some((pixels, i) => pixels < least[i]!))
      fault(
        ["resize"],
        `resize ${[resize].flat().join("×")} is smaller than ${targetKey} ${least.join("×")}, so images cannot be cropped to it; raise resize, or use fit`,
      );
  }
  if ("augment" in data && data.augment?.resizedCrop !== undefined) {
    const { crop, resizedCrop } = data.augment;
    if (crop > 0) fault(["augment", "crop"], `both crop (${crop}) and resizedCrop crop images; leave one out`);
    for (const name of ["scale", "ratio"] as const) {
      const [least, most] = resizedCrop[name];
      if (least > most)
        fault(
          ["augment", "resizedCrop", name],
          `the minimum ${least} is above the maximum ${most}, but the minimum comes first; swap them`,
        );
    }
  }
  return faults;
};

/** Returns the problems found in a job's data options. */
export const dataFaults = ({ data }: Job): CrossFieldFault[] => [
  ...(data.kind === "numpy" && (data.file === undefined) === (data.folder === undefined)
    ? [
        {
          path: ["data"],
          rule: `${data.file === undefined ? "neither file nor folder is" : "both file and folder are"} given; give file: an .npz, or folder: one of .npy files`,
        },
      ]
    : []),
  ...(data.validationFrom !== undefined && data.validationFraction === undefined
    ? [
        {
          path: ["data", "validationFrom"],
          rule: `validationFrom: ${data.validationFrom} has no effect without validationFraction; give validationFraction, such as 0.1, or leave validationFrom out`,
        },
      ]
    : []),
  ...imageFaults(data),
];
