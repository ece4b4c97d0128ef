import { hostname } from "node:os";
import type { Prepared } from "../preparation/prepare.ts";
import type { Files } from "../files/files.ts";
import { ConfigError } from "../errors.ts";
import { isPlanned } from "../plans/exchange-plan.ts";
import type { Assignment } from "../rank/messages.ts";
import { requireMark } from "../run-files/output-mark.ts";

/** Whether ranks write parts of checkpoints: rank 0 what all share, the others what they have alone, or a shard of. */
const writesParts = ({ job, ownLeaves }: Pick<Prepared, "job" | "ownLeaves">, ranks: readonly number[]): boolean =>
  ranks.includes(0) || ownLeaves.size > 0 || job.mesh.expert > 1 || job.mesh.tensor > 1 || isPlanned(job);

/**
 * Check that this process sees what it needs of the output folder: the folder itself if its ranks write there, else,
 * when a run goes on, the checkpoint, of which a copy under the same path will do.
 *
 * @throws ConfigError, or the system's error if it may not write.
 */
export const requireFolderOf = async (
  files: Files,
  { output, mark, resume }: Pick<Assignment, "output" | "mark" | "resume">,
  prepared: Pick<Prepared, "job" | "ownLeaves">,
  ranks: readonly number[],
): Promise<void> => {
  if (mark === undefined) return;
  if (writesParts(prepared, ranks)) return requireMark(files, output, mark, ranks);
  if (resume === undefined || files.list(resume.folder).length > 0) return;
  throw new ConfigError([
    `--output ${output}: the process of rank ${ranks.join(", ")} on ${hostname()} does not see the checkpoint ${resume.folder} that the run goes on from; copy that folder there under the same path, or name an output folder on a disk that all machines share`,
  ]);
};
