import { stopCodes } from "@skein/cli/node";
import type { Container, JobSetSpec, JobSpec } from "./kubernetes-objects.ts";
import type { LaunchPlan } from "./launch-plan.ts";
import type { Launch } from "./launch-target.ts";
import { onDisruption, onRetriable, onUsageError, podTemplate, rankContainer } from "./rank-pod.ts";
import { jobConfigMap, joinSecret, kubernetesLaunch, runMetadata, runName, runOnly } from "./run-objects.ts";

/** Name of the Job in a JobSet whose pods run ranks. Kubeflow's MPI policy also searches for this name. */
export const nodeJob = "node";

/** Returns the DNS name that a JobSet gives to pod `index` of one of its Jobs. */
export const podHost = (plan: LaunchPlan, replicatedJob: string, index: number): string =>
  `${runName(plan)}-${replicatedJob}-0-${index}.${runName(plan)}`;

/**
 * Returns a Job without replacement of single pods: the first failure fails the Job, and the JobSet restarts all pods.
 */
export const gangJob = (plan: LaunchPlan, pods: number, container: Container): JobSpec => ({
  completionMode: "Indexed",
  completions: pods,
  parallelism: pods,
  backoffLimit: 0,
  podFailurePolicy: { rules: [onUsageError("FailJob"), ...onDisruption("FailJob"), onRetriable] },
  ...(plan.seconds !== undefined && { activeDeadlineSeconds: plan.seconds }),
  template: podTemplate(plan, container),
});

/**
 * Returns a JobSet that restarts all its pods together. Its failure policy selects an action by the reason and message
 * of a failed Job. A pod evicted by the cluster costs no restart. A usage error or an exceeded time limit ends the
 * JobSet. Any other failure costs one restart.
 */
export const gangJobSet = (
  plan: LaunchPlan,
  finishes: string,
  replicatedJobs: JobSetSpec["replicatedJobs"],
): JobSetSpec => ({
  network: { enableDNSHostnames: true, subdomain: runName(plan), publishNotReadyAddresses: true },
  successPolicy: { operator: "All", targetReplicatedJobs: [finishes] },
  failurePolicy: {
    maxRestarts: plan.maxRestarts,
    restartStrategy: "BlockingRecreate", // pods of the previous attempt must not disturb the next rendezvous
    rules: [
      {
        name: "disruption",
        action: "RestartJobSetAndIgnoreMaxRestarts",
        onJobFailureReasons: ["PodFailurePolicy"],
        onJobFailureMessagePatterns: ["condition DisruptionTarget", `exit code (${stopCodes.join("|")})\\b`],
      },
      { name: "wrongUse", action: "FailJobSet", onJobFailureReasons: ["PodFailurePolicy"] },
      { name: "outOfTime", action: "FailJobSet", onJobFailureReasons: ["DeadlineExceeded"] },
    ],
  },
  replicatedJobs,
});

/** Converts a plan to a JobSet (jobset.x-k8s.io/v1alpha2, 0.11 or later) with one pod per process. */
export const jobset = (plan: LaunchPlan, secret: string): Launch =>
  kubernetesLaunch(plan, [
    jobConfigMap(plan),
    joinSecret(plan, secret),
    runOnly(plan),
    {
      apiVersion: "jobset.x-k8s.io/v1alpha2",
      kind: "JobSet",
      metadata: runMetadata(plan, { queued: true }),
      spec: gangJobSet(plan, nodeJob, [
        {
          name: nodeJob,
          replicas: 1,
          template: { spec: gangJob(plan, plan.processes, rankContainer(plan, podHost(plan, nodeJob, 0))) },
        },
      ]),
    },
  ]);
