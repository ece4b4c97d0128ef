import { hostname } from "node:os";
import { ConfigError, type Files } from "@skein/cli/node";
import { requireMark } from "@skein/run-files/node";
import { isPlanned } from "@skein/step/node";
import type { Prepared } from "../preparation/prepared.ts";
import type { Assignment } from "../rank/messages.ts";

/**
 * Whether any of the given ranks may write checkpoint files. Rank 0 writes the shared tensors; other ranks write their
 * own tensors or shards.
 */
const writesParts = ({ job, ownLeaves }: Pick<Prepared, "job" | "ownLeaves">, ranks: readonly number[]): boolean =>
  ranks.includes(0) || ownLeaves.size > 0 || job.mesh.expert > 1 || job.mesh.tensor > 1 || isPlanned(job);

/**
 * Requires that this process sees the folder that its ranks need: the output folder if the ranks write checkpoint
 * files, otherwise, in a resumed run, the checkpoint or a copy under the same path.
 *
 * @throws ConfigError, or the system's error if the folder cannot be written to.
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
    `--output ${output}: the process of rank ${ranks.join(", ")} on ${hostname()} does not see the checkpoint ${resume.folder} from which the run resumes; copy that folder there under the same path, or name an output folder on a disk that all machines share`,
  ]);
};
