import { z } from "zod";

/**
 * Schemas of the parts of cluster APIs that launch targets write. Unknown keys are rejected, as an API server does on
 * `kubectl create`. Transcribed from the API reference of Kubernetes 1.29 (batch/v1, core/v1), from the CRDs of JobSet
 * v0.11.1 (jobset.x-k8s.io/v1alpha2; its rules in pkg/webhooks) and of Kubeflow Trainer v2.2.0
 * (trainer.kubeflow.org/v1alpha1).
 */

/** Schema of a DNS label (RFC 1035), as required for names of Services, JobSets and TrainJobs. */
const label = z
  .string()
  .regex(/^[a-z]([-a-z0-9]*[a-z0-9])?$/)
  .max(63);
const labels = z.record(
  z.string().max(317),
  z
    .string()
    .regex(/^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$/)
    .max(63),
);
const metadata = z.strictObject({ name: label, namespace: label.optional(), labels });
const quantity = z.string().regex(/^\d+(Ki|Mi|Gi|Ti)?$/);
const port = z.int().min(1).max(65535);
const portName = z
  .string()
  .regex(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/)
  .max(15);

const envVar = z.union([
  z.strictObject({ name: z.string().regex(/^[A-Z_]+$/), value: z.string() }),
  z.strictObject({
    name: z.string(),
    valueFrom: z.strictObject({ secretKeyRef: z.strictObject({ name: label, key: z.string() }) }),
  }),
]);

const container = z.strictObject({
  name: label,
  image: z.string().min(1).max(500),
  command: z.array(z.string()),
  args: z.array(z.string()),
  env: z.array(envVar),
  ports: z.array(z.strictObject({ name: portName, containerPort: port })),
  readinessProbe: z.strictObject({ tcpSocket: z.strictObject({ port }), periodSeconds: z.int().min(1) }).optional(),
  resources: z.strictObject({ requests: z.record(z.string(), quantity), limits: z.record(z.string(), quantity) }),
  securityContext: z.strictObject({
    allowPrivilegeEscalation: z.literal(false),
    readOnlyRootFilesystem: z.literal(true),
    capabilities: z.strictObject({ drop: z.tuple([z.literal("ALL")]) }),
  }),
  volumeMounts: z.array(
    z.strictObject({
      name: label,
      mountPath: z.string().startsWith("/"),
      readOnly: z.literal(true).optional(),
      subPathExpr: z.string().optional(),
    }),
  ),
});

const volume = z.union([
  z.strictObject({ name: label, configMap: z.strictObject({ name: label }) }),
  z.strictObject({
    name: label,
    projected: z.strictObject({
      defaultMode: z.int().min(0).max(0o777),
      sources: z.array(
        z.strictObject({
          secret: z.strictObject({
            name: z.string(),
            items: z.array(
              z.strictObject({
                key: z.string().regex(/^[-._a-zA-Z0-9]+$/),
                path: z.string().regex(/^(?!\/)(?!.*\.\.).+$/),
              }),
            ),
            optional: z.boolean().optional(),
          }),
        }),
      ),
    }),
  }),
  z.strictObject({ name: label, persistentVolumeClaim: z.strictObject({ claimName: z.string() }) }),
  z.strictObject({ name: label, emptyDir: z.strictObject({}) }),
]);

const podTemplate = z.strictObject({
  metadata: z.strictObject({ labels }),
  spec: z.strictObject({
    restartPolicy: z.literal("Never"), // required by podFailurePolicy
    subdomain: label.optional(),
    terminationGracePeriodSeconds: z.int().min(0),
    automountServiceAccountToken: z.literal(false),
    enableServiceLinks: z.literal(false),
    securityContext: z.strictObject({
      runAsNonRoot: z.literal(true),
      runAsUser: z.int().min(1),
      runAsGroup: z.int().min(1),
      fsGroup: z.int().min(1),
      fsGroupChangePolicy: z.enum(["OnRootMismatch", "Always"]),
      seccompProfile: z.strictObject({ type: z.enum(["RuntimeDefault", "Localhost", "Unconfined"]) }),
    }),
    containers: z.array(container).min(1),
    volumes: z.array(volume),
  }),
});

const failureRule = z
  .strictObject({
    action: z.enum(["FailJob", "Ignore", "Count", "FailIndex"]),
    onExitCodes: z
      .strictObject({
        containerName: label,
        operator: z.enum(["In", "NotIn"]),
        values: z.array(z.int().min(1).max(255)).min(1).max(255),
      })
      .optional(),
    onPodConditions: z
      .array(z.strictObject({ type: z.string(), status: z.enum(["True", "False", "Unknown"]) }))
      .min(1)
      .optional(),
  })
  .refine(
    ({ onExitCodes, onPodConditions }) => (onExitCodes === undefined) !== (onPodConditions === undefined),
    "exactly one requirement",
  );

const jobSpec = z
  .strictObject({
    completionMode: z.enum(["Indexed", "NonIndexed"]),
    completions: z.int().min(1),
    parallelism: z.int().min(1),
    backoffLimit: z.int().min(0).optional(),
    backoffLimitPerIndex: z.int().min(0).optional(),
    maxFailedIndexes: z.int().min(0).optional(),
    podReplacementPolicy: z.literal("Failed").optional(), // the only value allowed with a podFailurePolicy
    activeDeadlineSeconds: z.int().min(1).optional(),
    podFailurePolicy: z.strictObject({ rules: z.array(failureRule).max(20) }),
    template: podTemplate,
  })
  .refine(
    (spec) => spec.maxFailedIndexes === undefined || spec.backoffLimitPerIndex !== undefined,
    "maxFailedIndexes needs backoffLimitPerIndex",
  );

const jobSetSpec = z.strictObject({
  network: z.strictObject({ enableDNSHostnames: z.boolean(), subdomain: label, publishNotReadyAddresses: z.boolean() }),
  successPolicy: z.strictObject({ operator: z.enum(["All", "Any"]), targetReplicatedJobs: z.array(z.string()) }),
  failurePolicy: z.strictObject({
    maxRestarts: z.int().min(0),
    restartStrategy: z.enum(["Recreate", "BlockingRecreate", "InPlaceRestart"]),
    rules: z.array(
      z.strictObject({
        name: z
          .string()
          .regex(/^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$/)
          .max(128),
        action: z.enum(["FailJobSet", "RestartJobSet", "RestartJobSetAndIgnoreMaxRestarts"]),
        onJobFailureReasons: z.array(
          z.enum([
            "BackoffLimitExceeded",
            "DeadlineExceeded",
            "FailedIndexes",
            "MaxFailedIndexesExceeded",
            "PodFailurePolicy",
          ]),
        ),
        onJobFailureMessagePatterns: z.array(z.string()).optional(),
      }),
    ),
  }),
  replicatedJobs: z.array(
    z.strictObject({
      name: label,
      replicas: z.int().min(0),
      dependsOn: z
        .array(z.strictObject({ name: label, status: z.enum(["Ready", "Complete"]) }))
        .max(5)
        .optional(),
      template: z.strictObject({ metadata: z.strictObject({ labels }).optional(), spec: jobSpec }),
    }),
  ),
});

const object = <K extends string, S extends z.ZodType>(apiVersion: string, kind: K, spec: S) =>
  z.strictObject({ apiVersion: z.literal(apiVersion), kind: z.literal(kind), metadata, spec });

/** Schemas of objects, by `kind`. */
export const clusterSchemas: Readonly<Record<string, z.ZodType>> = {
  ConfigMap: z.strictObject({
    apiVersion: z.literal("v1"),
    kind: z.literal("ConfigMap"),
    metadata,
    immutable: z.literal(true),
    data: z.record(z.string().regex(/^[-._A-Za-z0-9]+$/), z.string()),
  }),
  Secret: z.strictObject({
    apiVersion: z.literal("v1"),
    kind: z.literal("Secret"),
    metadata,
    immutable: z.literal(true),
    type: z.literal("Opaque"),
    stringData: z.record(z.string().regex(/^[-._A-Za-z0-9]+$/), z.string()),
  }),
  Service: object(
    "v1",
    "Service",
    z.strictObject({
      clusterIP: z.literal("None"),
      publishNotReadyAddresses: z.literal(true),
      selector: labels,
      ports: z.array(z.strictObject({ name: portName, port })),
    }),
  ),
  NetworkPolicy: object(
    "networking.k8s.io/v1",
    "NetworkPolicy",
    z.strictObject({
      podSelector: z.strictObject({ matchLabels: labels }),
      policyTypes: z.array(z.enum(["Ingress", "Egress"])).min(1),
      ingress: z.array(
        z.strictObject({
          from: z.array(z.strictObject({ podSelector: z.strictObject({ matchLabels: labels }) })).min(1),
        }),
      ),
    }),
  ),
  Job: object("batch/v1", "Job", jobSpec),
  JobSet: object("jobset.x-k8s.io/v1alpha2", "JobSet", jobSetSpec),
  TrainingRuntime: object(
    "trainer.kubeflow.org/v1alpha1",
    "TrainingRuntime",
    z.strictObject({
      mlPolicy: z.strictObject({
        numNodes: z.int().min(1),
        mpi: z
          .strictObject({
            numProcPerNode: z.int().min(1),
            mpiImplementation: z.enum(["OpenMPI", ""]),
            sshAuthMountPath: z.string().max(4096),
            runLauncherAsNode: z.boolean(),
          })
          .optional(),
      }),
      template: z.strictObject({ spec: jobSetSpec }),
    }),
  ),
  TrainJob: object(
    "trainer.kubeflow.org/v1alpha1",
    "TrainJob",
    z.strictObject({
      runtimeRef: z.strictObject({ apiGroup: z.string(), kind: z.string(), name: z.string().min(1).max(253) }),
      trainer: z.strictObject({ numNodes: z.int().min(0), numProcPerNode: z.int().min(1).optional() }),
      activeDeadlineSeconds: z.int().min(1).optional(),
    }),
  ),
};
