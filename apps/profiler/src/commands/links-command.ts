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
  new ArgumentError(`--output ${output}: cannot be written (${reason}); name a file in a folder that you may write to`);

/** Look before anything is measured. @throws ArgumentError. */
const requirePlace = (output: string): void => {
  if (statSync(dirname(output), { throwIfNoEntry: false })?.isDirectory() !== true)
    throw notWritable(output, "its folder is not there");
  if (statSync(output, { throwIfNoEntry: false })?.isDirectory() === true) throw notWritable(output, "it is a folder");
};

/** `skein-profile links`: what messages between the ranks of a job cost. */
export const linksCommand = async (
  file: string,
  { hardware, output, json = false, ...jobOptions }: LinksCommandOptions,
): Promise<number> => {
  if ((hardware === undefined) !== (output === undefined))
    throw new ArgumentError(
      output === undefined
        ? `--hardware ${hardware}: where the file with these links goes is not said; add --output <file>`
        : `--output ${output}: what the links are to be put into is not said; add --hardware <file>, or use skein-train links for a file of links alone`,
    );
  if (output !== undefined) requirePlace(output);
  const described = hardware === undefined ? undefined : hardwareOf(hardware);
  const job = await openJob(file, jobOptions);
  const links = await job.links();
  const lines = json ? [JSON.stringify(links)] : linkLines(links, process.stdout.columns ?? 80);
  for (const line of lines) writeStdout(`${line}\n`);
  if (described === undefined || output === undefined) return exitCodes.ok;
  const { hardware: relinked, kept } = withLinks(described, links);
  try {
    writeFileSync(output, formatHardwareFile(relinked));
  } catch (error) {
    throw notWritable(output, error instanceof Error ? error.message : String(error));
  }
  const stays = kept === undefined ? "" : `; its links ${kept} hosts, which this job has not, are as they were`;
  writeStderr(
    asTyped(
      `${relinked.name} with these links is in ${output}${stays}; use it with skein-profile predict ${file} --hardware ${output}\n`,
    ),
  );
  return exitCodes.ok;
};
