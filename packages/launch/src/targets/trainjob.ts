import type { Container, JobSetSpec, KubernetesObject } from "./kubernetes-objects.ts";
import { gangJob, gangJobSet, nodeJob, podHost } from "./jobset.ts";
import type { LaunchPlan } from "./launch-plan.ts";
import type { Launch } from "./launch-target.ts";
import { jobPath, literal, outputPath, rankContainer, rankEnvironment, resourcesOf } from "./rank-pod.ts";
import { jobConfigMap, joinSecret, kubernetesLaunch, portOf, runMetadata, runName, runOnly } from "./run-objects.ts";

/** Label of the runtime's job to which the `trainer` section of a TrainJob applies. */
const ancestorLabel = { "trainer.kubeflow.org/trainjob-ancestor-step": "trainer" };

const launcherJob = "launcher";
const sshFolder = "/etc/skein/ssh";
const sshPort = 2222; // a port below 1024 needs a privilege that the pods do not have
const hostfile = "/etc/mpi/hostfile"; // written into the launcher's pod by Kubeflow's MPI policy

/**
 * Script that starts sshd for mpirun. A new host key is created in each pod. The key that Kubeflow mounts authorizes
 * clients.
 */
const sshServer = [
  "set -e",
  "ssh-keygen -q -t ed25519 -N '' -f /tmp/ssh_host_key",
  `exec /usr/sbin/sshd -D -e -f /dev/null -p ${sshPort} -h /tmp/ssh_host_key -o PidFile=none -o UsePAM=no -o StrictModes=no -o PasswordAuthentication=no -o AuthorizedKeysFile=${sshFolder}/authorized_keys`,
].join("\n");

const nodeContainer = (plan: LaunchPlan, processesPerNode: number): Container => ({
  ...rankContainer(plan, podHost(plan, nodeJob, 0)),
  command: ["sh", "-c"],
  args: [sshServer],
  ports: [{ name: "ssh", containerPort: sshPort }],
  readinessProbe: { tcpSocket: { port: sshPort }, periodSeconds: 2 },
  resources: resourcesOf(plan, processesPerNode),
});

/**
 * Returns the container of the launcher. skein-train inside the launcher selects mpirun's options, which depend on the
 * Open MPI version in the image.
 */
const launcherContainer = (plan: LaunchPlan, processesPerNode: number): Container => {
  return {
    ...rankContainer(plan, podHost(plan, nodeJob, 0)),
    args: [
      "launch",
      jobPath,
      "--target",
      "mpirun",
      "--submit",
      "--ranks",
      String(plan.ranks),
      "--transport",
      "mpi",
      "--hostfile",
      hostfile,
      "--ssh-port",
      String(sshPort),
      "--ssh-key",
      `${sshFolder}/id_rsa`,
      "--ssh-trust-any-host", // each pod creates a host key, which cannot be known in advance
      "--port",
      String(portOf(plan)),
      "--max-restarts",
      "0", // the JobSet handles restarts, with new pods
      ...(plan.insecure ? ["--insecure"] : []),
      ...plan.overrides,
      "--output",
      outputPath(plan),
    ].map(literal),
    resources: resourcesOf(plan, processesPerNode),
    // The launcher is not a rank; mpirun assigns ranks to the processes that it starts.
    env: rankEnvironment(plan, podHost(plan, nodeJob, 0)).filter(({ name }) => name !== "WORLD_SIZE"),
  };
};

const plainJobs = (plan: LaunchPlan): JobSetSpec["replicatedJobs"] => [
  {
    name: nodeJob,
    replicas: 1,
    template: {
      metadata: { labels: ancestorLabel },
      spec: gangJob(plan, plan.processes, rankContainer(plan, podHost(plan, nodeJob, 0))),
    },
  },
];

const mpiJobs = (plan: LaunchPlan, nodes: number, processesPerNode: number): JobSetSpec["replicatedJobs"] => [
  { name: nodeJob, replicas: 1, template: { spec: gangJob(plan, nodes - 1, nodeContainer(plan, processesPerNode)) } },
  {
    name: launcherJob,
    replicas: 1,
    dependsOn: [{ name: nodeJob, status: "Ready" }],
    template: {
      metadata: { labels: ancestorLabel },
      spec: gangJob(plan, 1, launcherContainer(plan, processesPerNode)),
    },
  },
];

/**
 * Converts a plan to a Kubeflow TrainJob (trainer.kubeflow.org/v1alpha1, 2.2 or later) with its own TrainingRuntime, so
 * that no runtime needs to be installed. Without MPI, each node runs one process. With MPI, each of the `nodes`
 * machines runs the same number of processes, and the launcher runs on one of the machines.
 */
export const trainjob = (whole: LaunchPlan, secret: string): Launch => {
  const plan: LaunchPlan = { ...whole, seconds: undefined }; // the TrainJob limits the time of all attempts together
  const name = runName(plan);
  const overMpi = plan.transport === "mpi";
  const numNodes = overMpi ? plan.nodes! : plan.processes;
  const numProcPerNode = plan.processes / numNodes;
  const objects: KubernetesObject[] = [
    {
      apiVersion: "trainer.kubeflow.org/v1alpha1",
      kind: "TrainingRuntime",
      metadata: runMetadata(plan),
      spec: {
        mlPolicy: {
          numNodes,
          ...(overMpi && {
            mpi: { numProcPerNode, mpiImplementation: "OpenMPI", sshAuthMountPath: sshFolder, runLauncherAsNode: true },
          }),
        },
        template: {
          spec: overMpi
            ? gangJobSet(plan, launcherJob, mpiJobs(plan, numNodes, numProcPerNode))
            : gangJobSet(plan, nodeJob, plainJobs(plan)),
        },
      },
    },
    {
      apiVersion: "trainer.kubeflow.org/v1alpha1",
      kind: "TrainJob",
      metadata: runMetadata(plan, { queued: true }),
      spec: {
        runtimeRef: { apiGroup: "trainer.kubeflow.org", kind: "TrainingRuntime", name },
        trainer: { numNodes, ...(overMpi && { numProcPerNode }) },
        ...(whole.seconds !== undefined && { activeDeadlineSeconds: whole.seconds }),
      },
    },
  ];
  return kubernetesLaunch(plan, [jobConfigMap(plan), joinSecret(plan, secret), runOnly(plan), ...objects]);
};
