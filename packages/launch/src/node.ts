export { coordinatorFiles, issueIdentities, rankFiles, writeCertificates } from "./certificates/certificate-folder.ts";
export { addCertsCommand } from "./certificates/certs-command.ts";
export { jobset } from "./targets/jobset.ts";
export { k8sJob } from "./targets/k8s-job.ts";
export type { Container, JobSetSpec, JobSpec, KubernetesObject, PodTemplate } from "./targets/kubernetes-objects.ts";
export { type LaunchContext, type LaunchOptions, launchTransports, targetNames } from "./targets/launch-options.ts";
export { type LaunchPlan, makeLaunchPlan } from "./targets/launch-plan.ts";
export type { Launch, LaunchFile, LaunchTarget } from "./targets/launch-target.ts";
export { startAttempt, submit } from "./targets/launcher-process.ts";
export { localCommand } from "./targets/local.ts";
export { mpirunHost } from "./targets/mpirun-host.ts";
export { parseMpirunVersion } from "./targets/mpirun-version.ts";
export {
  firstHost,
  mpirunCommand,
  mpirunFlags,
  type MpirunHost,
  mpirunScript,
  stopSignalOf,
} from "./targets/mpirun.ts";
export { longestObjectName, objectName } from "./targets/object-name.ts";
export { coordinatorVariable, defaultPort, secretVariable } from "./targets/rank-command.ts";
export { literal } from "./targets/rank-pod.ts";
export { printObject } from "./targets/run-objects.ts";
export { slurm } from "./targets/slurm.ts";
export { stopShield } from "./targets/stop-shield.ts";
export { codeAfter, supervise } from "./targets/supervise.ts";
export { trainjob } from "./targets/trainjob.ts";
