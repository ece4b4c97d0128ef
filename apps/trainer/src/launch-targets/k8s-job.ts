import type { JobSpec, KubernetesObject } from "./kubernetes-objects.ts";
import type { LaunchPlan } from "./launch-plan.ts";
import type { Launch } from "./launch-target.ts";
import { onDisruption, onPassing, onWrongUse, podTemplate, rankContainer } from "./rank-pod.ts";
import {
  headlessService,
  jobConfigMap,
  joinSecret,
  kubernetesLaunch,
  runMetadata,
  runName,
  runOnly,
} from "./run-objects.ts";

/** Index 0 of an Indexed Job, by the name that its Service gives it. */
const coordinatorHost = (plan: LaunchPlan): string => `${runName(plan)}-0.${runName(plan)}`;

/**
 * Restarts of a gang without an operator. A rank that dies makes its peers end too, within seconds and with an error of
 * their own; each pod is then replaced by one of the same index, and all meet again at the rendezvous. So one restart
 * of the gang is one failure of *each* index: limits per index count restarts, where `backoffLimit` would count them
 * once for every rank. The first index to run out ends the Job, as the others can do nothing without it.
 */
const restartPolicy = (
  plan: LaunchPlan,
): Pick<JobSpec, "backoffLimitPerIndex" | "maxFailedIndexes" | "podReplacementPolicy" | "podFailurePolicy"> => ({
  backoffLimitPerIndex: plan.maxRestarts,
  maxFailedIndexes: 0,
  podReplacementPolicy: "Failed", // never two pods of one rank at once
  podFailurePolicy: { rules: [onWrongUse("FailJob"), ...onDisruption("Ignore"), onPassing] },
});

/** A batch/v1 Indexed Job, one pod per process, for clusters without any operator. */
export const k8sJob = (plan: LaunchPlan, secret: string): Launch => {
  const job: KubernetesObject = {
    apiVersion: "batch/v1",
    kind: "Job",
    metadata: runMetadata(plan, { queued: true }),
    spec: {
      completionMode: "Indexed",
      completions: plan.processes,
      parallelism: plan.processes,
      ...restartPolicy(plan),
      ...(plan.seconds !== undefined && { activeDeadlineSeconds: plan.seconds }),
      template: podTemplate(plan, rankContainer(plan, coordinatorHost(plan)), { subdomain: runName(plan) }),
    },
  };
  return kubernetesLaunch(plan, [
    jobConfigMap(plan),
    joinSecret(plan, secret),
    runOnly(plan),
    headlessService(plan),
    job,
  ]);
};
