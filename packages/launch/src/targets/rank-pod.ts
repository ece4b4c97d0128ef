import { exitCodes, stopCodes } from "@skein/cli/node";
import type { Container, EnvVar, PodFailureRule, PodTemplate, Volume } from "./kubernetes-objects.ts";
import type { LaunchPlan } from "./launch-plan.ts";
import { coordinatorVariable, rankArguments, secretVariable } from "./rank-command.ts";
import { jobFileName, portOf, runLabels, runName } from "./run-objects.ts";
import { coordinatorFiles, rankFiles } from "../certificates/certificate-folder.ts";

/** Name of the training container. Kubeflow's runtimes search for this name. */
export const containerName = "node";

const jobFolder = "/etc/skein/job";
/**
 * Name of the environment variable with the pod's index, which the Job controller sets in each pod of an Indexed Job.
 */
const indexVariable = "JOB_COMPLETION_INDEX";

const certificatesFolder = "/etc/skein/certificates";
const claimFolder = "/output";

/** Seconds between the request to stop a pod and its kill, enough to save a last checkpoint. */
const graceSeconds = 120;
const userId = 1000;

export const jobPath: string = `${jobFolder}/${jobFileName}`;
export const outputPath = (plan: LaunchPlan): string => `${claimFolder}/${plan.output ?? runName(plan)}`;

/** Escapes `$`, because the kubelet expands `$(NAME)` in arguments and values, and replaces `$$` by `$`. */
export const literal = (text: string): string => text.replaceAll("$", "$$$$");

const defaultMemory = "4Gi";

/**
 * Returns the resources of a container. Requests equal limits, because a throttled or evicted rank delays all other
 * ranks.
 */
export const resourcesOf = (plan: LaunchPlan, processes = 1): Container["resources"] => {
  const ranks = (processes * plan.ranks) / plan.processes;
  const amounts = {
    cpu: String(plan.cpus * ranks),
    memory:
      plan.memoryBytes === undefined ? multiply(defaultMemory, ranks) : `${(plan.memoryBytes * ranks) / 2 ** 10}Ki`,
    ...(plan.gpus > 0 && { [plan.gpuResource ?? "nvidia.com/gpu"]: String(plan.gpus * ranks) }),
  };
  return { requests: amounts, limits: amounts };
};

const multiply = (amount: string, times: number): string =>
  `${Number.parseInt(amount, 10) * times}${amount.replace(/^\d+/, "")}`;

/** Returns the environment variables of every process that runs ranks. */
export const rankEnvironment = (plan: LaunchPlan, coordinatorHost: string): EnvVar[] => [
  // Kubernetes sets the index but not the number of processes.
  { name: "WORLD_SIZE", value: String(plan.processes) },
  { name: coordinatorVariable, value: `${coordinatorHost}:${portOf(plan)}` },
  { name: secretVariable, valueFrom: { secretKeyRef: { name: `${runName(plan)}-secret`, key: secretVariable } } },
  { name: "HOME", value: "/tmp" }, // for shader caches, because the root file system is read-only
  ...(plan.gpus > 0 ? [{ name: "NVIDIA_DRIVER_CAPABILITIES", value: "graphics,compute,utility" }] : []), // for Vulkan
];

export const restrictedContainer: Container["securityContext"] = {
  allowPrivilegeEscalation: false,
  readOnlyRootFilesystem: true,
  capabilities: { drop: ["ALL"] },
};

export const volumeMounts = (plan: LaunchPlan): Container["volumeMounts"] => [
  { name: "job", mountPath: jobFolder, readOnly: true },
  { name: "output", mountPath: claimFolder },
  { name: "tmp", mountPath: "/tmp" },
  ...(plan.certificates === undefined
    ? []
    : [
        {
          name: "certificates",
          mountPath: certificatesFolder,
          readOnly: true,
          subPathExpr: `$(${indexVariable})`,
        } as const,
      ]),
];

/**
 * Returns the paths of the Secret's files, with one folder per pod, so that each pod has only the keys of its process:
 * the key of the first rank of the process and, in the pod with the coordinator, the coordinator's key.
 */
const filesOfPods = (plan: LaunchPlan): { readonly key: string; readonly path: string }[] =>
  Array.from({ length: plan.processes }, (_, index) =>
    fileNames(plan, index).map((file) => ({ key: file, path: `${index}/${file}` })),
  ).flat();

const fileNames = (plan: LaunchPlan, index: number): string[] => {
  const { certificate, key, authority } = rankFiles("", (index * plan.ranks) / plan.processes);
  const coordinator = coordinatorFiles("");
  return [certificate, key, authority, ...(index === 0 ? [coordinator.certificate, coordinator.key] : [])];
};

/** Returns the path of the certificate revocation list for each pod. The list exists only after a revocation. */
const revokedOfPods = (plan: LaunchPlan): { readonly key: string; readonly path: string }[] => {
  const { revoked } = coordinatorFiles("");
  return Array.from({ length: plan.processes }, (_, index) => ({ key: revoked, path: `${index}/${revoked}` }));
};

const certificateVolume = (name: string, plan: LaunchPlan): Volume => ({
  name: "certificates",
  projected: {
    defaultMode: 0o440,
    sources: [
      { secret: { name, items: filesOfPods(plan) } },
      { secret: { name, items: revokedOfPods(plan), optional: true } },
    ],
  },
});

const volumes = (plan: LaunchPlan): Volume[] => [
  { name: "job", configMap: { name: `${runName(plan)}-job` } },
  { name: "output", persistentVolumeClaim: { claimName: plan.claim! } },
  { name: "tmp", emptyDir: {} },
  ...(plan.certificates === undefined ? [] : [certificateVolume(plan.certificates, plan)]),
];

/** Returns the paths of job, output and certificates inside a rank's pod. */
export const podPaths = (plan: LaunchPlan): Parameters<typeof rankArguments>[1] => ({
  job: jobPath,
  output: outputPath(plan),
  certificates: plan.certificates && certificatesFolder,
});

/** Returns the container of one process of the run. */
export const rankContainer = (plan: LaunchPlan, coordinatorHost: string): Container => ({
  name: containerName,
  image: plan.image!,
  command: ["skein-train"],
  args: rankArguments(plan, podPaths(plan)).map(literal),
  env: rankEnvironment(plan, coordinatorHost),
  ports: [{ name: "rendezvous", containerPort: portOf(plan) }],
  resources: resourcesOf(plan),
  securityContext: restrictedContainer,
  volumeMounts: volumeMounts(plan),
});

/**
 * Returns the template of a pod that runs as an unprivileged user, has no access to the API server, and is never
 * restarted in place, because the owner of the pod decides about restarts.
 */
export const podTemplate = (
  plan: LaunchPlan,
  container: Container,
  { subdomain }: { readonly subdomain?: string } = {},
): PodTemplate => ({
  metadata: { labels: runLabels(plan) },
  spec: {
    restartPolicy: "Never",
    ...(subdomain !== undefined && { subdomain }),
    terminationGracePeriodSeconds: graceSeconds,
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    securityContext: {
      runAsNonRoot: true,
      runAsUser: userId,
      runAsGroup: userId,
      fsGroup: userId,
      fsGroupChangePolicy: "OnRootMismatch",
      seccompProfile: { type: "RuntimeDefault" },
    },
    containers: [container],
    volumes: volumes(plan),
  },
});

/**
 * Returns the pod-failure rule for usage errors (a wrong job file or option), which would fail again on every attempt.
 */
export const onUsageError = (action: PodFailureRule["action"]): PodFailureRule => ({
  action,
  onExitCodes: { containerName, operator: "In", values: [exitCodes.usage] },
});

/**
 * Pod-failure rule for failures after which a retry may succeed. Each failure counts toward the restart limit of the
 * plan.
 */
export const onRetriable: PodFailureRule = {
  action: "Count",
  onExitCodes: { containerName, operator: "In", values: [exitCodes.failure, exitCodes.temporary] },
};

/**
 * Returns the pod-failure rules for pods that have not failed: pods evicted by the cluster, and pods that saved and
 * stopped on request.
 */
export const onDisruption = (action: PodFailureRule["action"]): PodFailureRule[] => [
  { action, onPodConditions: [{ type: "DisruptionTarget", status: "True" }] },
  { action, onExitCodes: { containerName, operator: "In", values: [...stopCodes] } },
];
