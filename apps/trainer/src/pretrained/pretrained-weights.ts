import type { NdArray } from "@skein/tensor-core";
import { leavesByPath } from "@skein/tensor-core/backend";
import type { Job } from "../job/job.ts";

/**
 * What a run begins with of a checkpoint that it is to train on, by the paths of its state; undefined where a job names
 * none. Each rank reads the files itself; on another machine they must hold what the controller of the run has.
 *
 * @throws PretrainedError, SafetensorsError, ConfigError where they do not.
 */
export const pretrainedWeights = async (job: Job): Promise<((path: string) => NdArray | undefined) | undefined> => {
  const { model } = job;
  if (model.kind !== "pretrained" || model.weights === "none") return undefined;
  // Only here: most ranks begin with weights of their own.
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
