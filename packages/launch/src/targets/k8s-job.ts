import type { JobSpec, KubernetesObject } from "./kubernetes-objects.ts";
import type { LaunchPlan } from "./launch-plan.ts";
import type { Launch } from "./launch-target.ts";
import { onDisruption, onRetriable, onUsageError, podTemplate, rankContainer } from "./rank-pod.ts";
import {
  headlessService,
  jobConfigMap,
  joinSecret,
  kubernetesLaunch,
  runMetadata,
  runName,
  runOnly,
} from "./run-objects.ts";

/** Returns the DNS name that the Service gives to index 0 of an Indexed Job. */
const coordinatorHost = (plan: LaunchPlan): string => `${runName(plan)}-0.${runName(plan)}`;

/**
 * Returns the restart policy of a group of pods without an operator. If a rank dies, its peers exit within seconds with
 * an error. Each pod is then replaced by a pod with the same index, and all pods join a new rendezvous. Therefore each
 * restart of the group counts as one failure per index, and is limited by the failures per index; `backoffLimit` would
 * count each restart once per rank. If one index has no retries left, the Job ends, because all other ranks need this
 * index.
 */
const restartPolicy = (
  plan: LaunchPlan,
): Pick<JobSpec, "backoffLimitPerIndex" | "maxFailedIndexes" | "podReplacementPolicy" | "podFailurePolicy"> => ({
  backoffLimitPerIndex: plan.maxRestarts,
  maxFailedIndexes: 0,
  podReplacementPolicy: "Failed", // avoids two pods of the same rank at the same time
  podFailurePolicy: { rules: [onUsageError("FailJob"), ...onDisruption("Ignore"), onRetriable] },
});

/** Converts a plan to a batch/v1 Indexed Job with one pod per process, for clusters without any operator. */
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
