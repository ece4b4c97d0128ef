import { readTextFile } from "@skein/collectives/files";
import { type HardwareFile, hardwareNamed } from "@skein/cost-model";
import { HardwareFileError, parseHardwareFile } from "@skein/cost-model/files";

/** Maximum size of a hardware file, in bytes; those that are shipped have some kilobytes. */
const maxHardwareBytes = 2 ** 22;

/**
 * A hardware file by its path, or one that is shipped, by its name.
 *
 * @throws HardwareFileError, ArgumentError in one line.
 */
export const hardwareOf = (asked: string): HardwareFile => {
  if (!/[./\\]/.test(asked)) return hardwareNamed(asked);
  let text: string;
  try {
    text = readTextFile(asked, maxHardwareBytes).text;
  } catch (error) {
    throw new HardwareFileError(`${asked} cannot be read (${error instanceof Error ? error.message : String(error)})`);
  }
  return parseHardwareFile(text, asked);
};
