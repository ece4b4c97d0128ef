import { stringify } from "yaml";
import type { KubernetesObject, Metadata } from "./kubernetes-objects.ts";
import type { LaunchPlan } from "./launch-plan.ts";
import type { Launch, LaunchFile } from "./launch-target.ts";
import { defaultPort, secretVariable } from "./rank-command.ts";
import { objectName } from "./object-name.ts";

/**
 * Returns the name of a run on a cluster, which is also the name of its Service and of its other objects, and the
 * prefix of pod names.
 */
export const runName = (plan: LaunchPlan): string => objectName(plan.name);

const instanceLabel = "app.kubernetes.io/instance";

export const runLabels = (plan: LaunchPlan): Readonly<Record<string, string>> => ({
  "app.kubernetes.io/name": "skein-train",
  [instanceLabel]: runName(plan),
});

/** Returns the metadata of an object of the run. `queued`: whether a queue admits the object. */
export const runMetadata = (
  plan: LaunchPlan,
  { suffix = "", queued = false }: { readonly suffix?: string; readonly queued?: boolean } = {},
): Metadata => ({
  name: `${runName(plan)}${suffix}`,
  ...(plan.namespace !== undefined && { namespace: plan.namespace }),
  labels: {
    ...runLabels(plan),
    ...(queued && plan.queue !== undefined && { "kueue.x-k8s.io/queue-name": plan.queue }),
  },
});

export const jobFileName = "job.yaml";

/** Returns a ConfigMap with the job file, for pods that cannot read this file system. */
export const jobConfigMap = (plan: LaunchPlan): KubernetesObject => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: runMetadata(plan, { suffix: "-job" }),
  immutable: true,
  data: { [jobFileName]: plan.job.text },
});

/** Returns a Secret with the secret that ranks need to join. */
export const joinSecret = (plan: LaunchPlan, secret: string): KubernetesObject => ({
  apiVersion: "v1",
  kind: "Secret",
  metadata: runMetadata(plan, { suffix: "-secret" }),
  immutable: true,
  type: "Opaque",
  stringData: { [secretVariable]: secret },
});

/** Returns the port of the rendezvous. Each pod has a separate IP address, so runs never compete for the port. */
export const portOf = ({ port }: LaunchPlan): number => port ?? defaultPort;

/**
 * Returns a Service that gives every pod of a Job a DNS name, `<pod's hostname>.<run>`. The name exists before the pod
 * is ready, because pods resolve names during the rendezvous, which precedes readiness.
 */
export const headlessService = (plan: LaunchPlan): KubernetesObject => ({
  apiVersion: "v1",
  kind: "Service",
  metadata: runMetadata(plan),
  spec: {
    clusterIP: "None",
    publishNotReadyAddresses: true,
    selector: { [instanceLabel]: runName(plan) },
    ports: [{ name: "rendezvous", port: portOf(plan) }],
  },
});

/**
 * Returns a network policy that lets only pods of the run connect to pods of the run, on any port. The policy has an
 * effect only if the cluster's network enforces policies. Outgoing traffic is not restricted; the cluster controls
 * access to storage and registries.
 */
export const runOnly = (plan: LaunchPlan): KubernetesObject => {
  const podSelector = { matchLabels: { [instanceLabel]: runName(plan) } };
  return {
    apiVersion: "networking.k8s.io/v1",
    kind: "NetworkPolicy",
    metadata: runMetadata(plan),
    spec: { podSelector, policyTypes: ["Ingress"], ingress: [{ from: [{ podSelector }] }] },
  };
};

/**
 * Formats an object as YAML 1.1, the version that kubectl reads. A bare `no` or `1:30` is not text in YAML 1.1, so such
 * values are quoted.
 */
export const printObject = (object: KubernetesObject): string =>
  stringify(object, { version: "1.1", lineWidth: 0, aliasDuplicateObjects: false });

/** Returns the objects of a run as files, and as input of `kubectl create`. */
export const kubernetesLaunch = (plan: LaunchPlan, objects: readonly KubernetesObject[]): Launch => {
  const namespace = plan.namespace === undefined ? [] : ["--namespace", plan.namespace];
  const files = objects.map((object): LaunchFile => {
    const { kind, metadata } = object;
    const name = `${metadata.name}.${kind.toLowerCase()}.yaml`;
    if (object.kind !== "Secret") return { name, text: printObject(object) };
    const kubectl = ["kubectl", ...namespace, "create", "secret", "generic", metadata.name].join(" ");
    return {
      name,
      text: printObject(object),
      instead: `# Secret ${metadata.name}: created by --submit, never printed. By hand:\n#   openssl rand -hex 32 | tr -d '\\n' | ${kubectl} --from-file=${secretVariable}=/dev/stdin\n`,
    };
  });
  return {
    files,
    // `kubectl create`, not `apply`: `apply` would store the secret in an annotation, and would not fail if a run of
    // this name exists.
    submission: {
      command: ["kubectl", ...namespace, "create", "-f", "-"],
      input: files.map(({ text }) => `---\n${text}`).join(""),
    },
  };
};
