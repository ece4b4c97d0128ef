import { statSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { formatHardwareFile } from "@skein/cost-model/files";
import { ArgumentError } from "@skein/tensor-core";
import { type JobOptions, openJob, writeStderr, writeStdout } from "skein-train/profiling";
import { exitCodes } from "../errors.ts";
import { linkLines } from "../links/link-lines.ts";
import { withLinks } from "../links/with-links.ts";
import { asTyped } from "../own-command.ts";
import { hardwareOf } from "../predict/hardware-of.ts";

export interface LinksCommandOptions extends Pick<JobOptions, "ranks" | "transport" | "set"> {
  readonly hardware?: string;
  readonly output?: string;
  readonly json?: boolean;
}

const notWritable = (output: string, reason: string): ArgumentError =>
  new ArgumentError(`--output ${output}: cannot be written (${reason}); give a file in a folder with write permission`);

/**
 * Checks, before the measurement, that a file can be written to `output`.
 * @throws ArgumentError if the folder does not exist or is not writable.
 */
const requireWritable = (output: string): void => {
  if (statSync(dirname(output), { throwIfNoEntry: false })?.isDirectory() !== true)
    throw notWritable(output, "its folder does not exist");
  if (statSync(output, { throwIfNoEntry: false })?.isDirectory() === true) throw notWritable(output, "it is a folder");
};

/** Implements `skein-profile links`: measures the cost of messages between the ranks of a job. */
export const linksCommand = async (
  file: string,
  { hardware, output, json = false, ...jobOptions }: LinksCommandOptions,
): Promise<number> => {
  if ((hardware === undefined) !== (output === undefined))
    throw new ArgumentError(
      output === undefined
        ? `--hardware ${hardware} needs an output file for the hardware with these links; add --output <file>`
        : `--output ${output} needs the hardware file whose links are replaced; add --hardware <file>, or use skein-train links for a file of links alone`,
    );
  if (output !== undefined) requireWritable(output);
  const described = hardware === undefined ? undefined : hardwareOf(hardware);
  const job = await openJob(file, jobOptions);
  const links = await job.links();
  const lines = json ? [JSON.stringify(links)] : linkLines(links, process.stdout.columns ?? 80);
  for (const line of lines) writeStdout(`${line}\n`);
  if (described === undefined || output === undefined) return exitCodes.ok;
  const { hardware: relinked, unmeasured } = withLinks(described, links);
  try {
    writeFileSync(output, formatHardwareFile(relinked));
  } catch (error) {
    throw notWritable(output, error instanceof Error ? error.message : String(error));
  }
  const rest =
    unmeasured === undefined ? "" : `; its links ${unmeasured} hosts are unchanged, because this job has none`;
  writeStderr(
    asTyped(
      `${relinked.name} with these links was written to ${output}${rest}; use it with skein-profile predict ${file} --hardware ${output}\n`,
    ),
  );
  return exitCodes.ok;
};
