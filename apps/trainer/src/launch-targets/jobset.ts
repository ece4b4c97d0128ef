import { stopCodes } from "../errors.ts";
import type { Container, JobSetSpec, JobSpec } from "./kubernetes-objects.ts";
import type { LaunchPlan } from "./launch-plan.ts";
import type { Launch } from "./launch-target.ts";
import { onDisruption, onPassing, onWrongUse, podTemplate, rankContainer } from "./rank-pod.ts";
import { jobConfigMap, joinSecret, kubernetesLaunch, runMetadata, runName, runOnly } from "./run-objects.ts";

/** The Job of a JobSet whose pods run ranks; also the name that Kubeflow's MPI policy looks for. */
export const nodeJob = "node";

/** Pod `index` of a Job of a JobSet, by the name that the JobSet gives it. */
export const podHost = (plan: LaunchPlan, replicatedJob: string, index: number): string =>
  `${runName(plan)}-${replicatedJob}-0-${index}.${runName(plan)}`;

/** Pods of which none is replaced alone: the first failure fails the Job, and the JobSet starts all again. */
export const gangJob = (plan: LaunchPlan, pods: number, container: Container): JobSpec => ({
  completionMode: "Indexed",
  completions: pods,
  parallelism: pods,
  backoffLimit: 0,
  podFailurePolicy: { rules: [onWrongUse("FailJob"), ...onDisruption("FailJob"), onPassing] },
  ...(plan.seconds !== undefined && { activeDeadlineSeconds: plan.seconds }),
  template: podTemplate(plan, container),
});

/**
 * A JobSet that restarts as a whole. What a Job failed of is told by reason and message: a pod that the cluster took
 * away costs no restart, wrong use and a run out of time end it, all else costs one restart.
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
    restartStrategy: "BlockingRecreate", // no pod of the last attempt is left to disturb the rendezvous of the next
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

/** A JobSet (jobset.x-k8s.io/v1alpha2, 0.11 or later), one pod per process. */
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
