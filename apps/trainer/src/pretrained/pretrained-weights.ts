import type { Job } from "@skein/job/node";
import type { NdArray } from "@skein/tensor-core";
import { leavesByPath } from "@skein/tensor-core/backend";

/**
 * Opens the pretrained checkpoint that a job names, and returns a function from paths in the training state to initial
 * weights. Undefined: the job names no checkpoint. Each rank reads the files of the checkpoint. On all machines, the
 * files must have the same content as on the controller's machine.
 *
 * @throws PretrainedError or SafetensorsError if a file is unreadable; ConfigError if the files differ from the
 * controller's files.
 */
export const pretrainedWeights = async (job: Job): Promise<((path: string) => NdArray | undefined) | undefined> => {
  const { model } = job;
  if (model.kind !== "pretrained" || model.weights === "none") return undefined;
  // Imported on demand, because most runs start without pretrained weights.
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
