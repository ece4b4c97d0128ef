import { readTextFile } from "@skein/collectives/files";
import { type HardwareFile, hardwareNamed } from "@skein/cost-model/hardware";
import { HardwareFileError, parseHardwareFile } from "@skein/cost-model/files";

/** Maximum size of a hardware file, in bytes. Shipped files have a few kilobytes. */
const maxHardwareBytes = 2 ** 22;

/**
 * Loads a hardware file by path, or a shipped hardware file by name.
 *
 * @throws HardwareFileError or ArgumentError with a one-line message.
 */
export const hardwareOf = (pathOrName: string): HardwareFile => {
  if (!/[./\\]/.test(pathOrName)) return hardwareNamed(pathOrName);
  let text: string;
  try {
    text = readTextFile(pathOrName, maxHardwareBytes).text;
  } catch (error) {
    throw new HardwareFileError(
      `${pathOrName} cannot be read (${error instanceof Error ? error.message : String(error)})`,
    );
  }
  return parseHardwareFile(text, pathOrName);
};
