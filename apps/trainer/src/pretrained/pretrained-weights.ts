import type { NdArray } from "@skein/tensor-core";
import { leavesByPath } from "@skein/tensor-core/backend";
import type { Job } from "../job/job.ts";

/**
 * Initial weights of a run from the checkpoint that the job names, by the paths of its state. Absent: the job names
 * none. Each rank reads the files itself; on another machine the files must have the same content as the controller's.
 *
 * @throws PretrainedError, SafetensorsError for unreadable files; ConfigError for different files.
 */
export const pretrainedWeights = async (job: Job): Promise<((path: string) => NdArray | undefined) | undefined> => {
  const { model } = job;
  if (model.kind !== "pretrained" || model.weights === "none") return undefined;
  // Imported here, because most ranks start with new weights.
  const [{ loadBody, loadPretrained }, { requireSamePretrained }] = await Promise.all([
    import("@skein/pretrained/node"),
    import("./settle-pretrained.ts"),
  ]);
  if (job.transport !== "threads") await requireSamePretrained(job);
  if (model.head === "new") {
    const body = await loadBody(model.folder, model.config!);
    return (path) => body.get(path.replace(/^model\./, "state."));
  }
  const { params, state } = await loadPretrained(model.folder);
  const arrays = leavesByPath<NdArray>({ params, model: state });
  return (path) => arrays.get(path);
};
