/**
 * Metadata of a Kubernetes object. Types in this file contain only the fields that launch targets write, from core/v1,
 * batch/v1 (1.29), networking.k8s.io/v1, JobSet v1alpha2 (0.11) and Kubeflow Trainer v1alpha1 (2.2).
 */

export interface Metadata {
  readonly name?: string;
  readonly namespace?: string;
  readonly labels?: Readonly<Record<string, string>>;
}

export interface EnvVar {
  readonly name: string;
  readonly value?: string;
  readonly valueFrom?: { readonly secretKeyRef: { readonly name: string; readonly key: string } };
}

export interface Container {
  readonly name: string;
  readonly image: string;
  readonly command: readonly string[];
  readonly args?: readonly string[];
  readonly env: readonly EnvVar[];
  readonly ports?: readonly { readonly name: string; readonly containerPort: number }[];
  readonly readinessProbe?: { readonly tcpSocket: { readonly port: number }; readonly periodSeconds: number };
  readonly resources: {
    readonly requests: Readonly<Record<string, string>>;
    readonly limits: Readonly<Record<string, string>>;
  };
  readonly securityContext: {
    readonly allowPrivilegeEscalation: false;
    readonly readOnlyRootFilesystem: true;
    readonly capabilities: { readonly drop: readonly ["ALL"] };
  };
  readonly volumeMounts: readonly {
    readonly name: string;
    readonly mountPath: string;
    readonly readOnly?: true;
    /**
     * Path of the only folder that is mounted from the volume. `$(NAME)` is replaced by the container's variable NAME.
     */
    readonly subPathExpr?: string;
  }[];
}

/**
 * Files that are mounted from a Secret, with their paths. If `optional` is true, the Secret or any of its files may be
 * missing.
 */
export interface SecretFiles {
  readonly name: string;
  readonly items: readonly { readonly key: string; readonly path: string }[];
  readonly optional?: boolean;
}

export type Volume = { readonly name: string } & (
  | { readonly configMap: { readonly name: string } }
  | {
      readonly projected: {
        readonly defaultMode: number;
        readonly sources: readonly { readonly secret: SecretFiles }[];
      };
    }
  | { readonly persistentVolumeClaim: { readonly claimName: string } }
  | { readonly emptyDir: Readonly<Record<string, never>> }
);

export interface PodTemplate {
  readonly metadata: Metadata;
  readonly spec: {
    readonly restartPolicy: "Never";
    readonly subdomain?: string;
    readonly terminationGracePeriodSeconds: number;
    readonly automountServiceAccountToken: false;
    readonly enableServiceLinks: false;
    readonly securityContext: {
      readonly runAsNonRoot: true;
      readonly runAsUser: number;
      readonly runAsGroup: number;
      readonly fsGroup: number;
      readonly fsGroupChangePolicy: "OnRootMismatch";
      readonly seccompProfile: { readonly type: "RuntimeDefault" };
    };
    readonly containers: readonly Container[];
    readonly volumes: readonly Volume[];
  };
}

export interface PodFailureRule {
  readonly action: "FailJob" | "Ignore" | "Count" | "FailIndex";
  readonly onExitCodes?: {
    readonly containerName: string;
    readonly operator: "In";
    readonly values: readonly number[];
  };
  readonly onPodConditions?: readonly { readonly type: "DisruptionTarget"; readonly status: "True" }[];
}

export interface JobSpec {
  readonly completionMode: "Indexed";
  readonly completions: number;
  readonly parallelism: number;
  readonly backoffLimit?: number;
  readonly backoffLimitPerIndex?: number;
  readonly maxFailedIndexes?: number;
  readonly podReplacementPolicy?: "Failed";
  readonly activeDeadlineSeconds?: number;
  readonly podFailurePolicy?: { readonly rules: readonly PodFailureRule[] };
  readonly template: PodTemplate;
}

export interface JobSetSpec {
  readonly network: {
    readonly enableDNSHostnames: true;
    readonly subdomain: string;
    readonly publishNotReadyAddresses: true;
  };
  readonly successPolicy: { readonly operator: "All"; readonly targetReplicatedJobs: readonly string[] };
  readonly failurePolicy: {
    readonly maxRestarts: number;
    readonly restartStrategy: "BlockingRecreate";
    readonly rules: readonly {
      readonly name: string;
      readonly action: "FailJobSet" | "RestartJobSet" | "RestartJobSetAndIgnoreMaxRestarts";
      readonly onJobFailureReasons: readonly ("PodFailurePolicy" | "DeadlineExceeded")[];
      readonly onJobFailureMessagePatterns?: readonly string[];
    }[];
  };
  readonly replicatedJobs: readonly {
    readonly name: string;
    readonly replicas: 1;
    readonly dependsOn?: readonly { readonly name: string; readonly status: "Ready" }[];
    readonly template: { readonly metadata?: Metadata; readonly spec: JobSpec };
  }[];
}

export interface LabelSelector {
  readonly matchLabels: Readonly<Record<string, string>>;
}

export type KubernetesObject = { readonly metadata: Metadata } & (
  | {
      readonly apiVersion: "v1";
      readonly kind: "ConfigMap";
      readonly immutable: true;
      readonly data: Readonly<Record<string, string>>;
    }
  | {
      readonly apiVersion: "v1";
      readonly kind: "Secret";
      readonly immutable: true;
      readonly type: "Opaque";
      readonly stringData: Readonly<Record<string, string>>;
    }
  | {
      readonly apiVersion: "v1";
      readonly kind: "Service";
      readonly spec: {
        readonly clusterIP: "None";
        readonly publishNotReadyAddresses: true;
        readonly selector: Readonly<Record<string, string>>;
        readonly ports: readonly { readonly name: string; readonly port: number }[];
      };
    }
  | {
      readonly apiVersion: "networking.k8s.io/v1";
      readonly kind: "NetworkPolicy";
      readonly spec: {
        readonly podSelector: LabelSelector;
        readonly policyTypes: readonly ["Ingress"];
        readonly ingress: readonly { readonly from: readonly { readonly podSelector: LabelSelector }[] }[];
      };
    }
  | { readonly apiVersion: "batch/v1"; readonly kind: "Job"; readonly spec: JobSpec }
  | { readonly apiVersion: "jobset.x-k8s.io/v1alpha2"; readonly kind: "JobSet"; readonly spec: JobSetSpec }
  | {
      readonly apiVersion: "trainer.kubeflow.org/v1alpha1";
      readonly kind: "TrainingRuntime";
      readonly spec: {
        readonly mlPolicy: {
          readonly numNodes: number;
          readonly mpi?: {
            readonly numProcPerNode: number;
            readonly mpiImplementation: "OpenMPI";
            readonly sshAuthMountPath: string;
            readonly runLauncherAsNode: true;
          };
        };
        readonly template: { readonly spec: JobSetSpec };
      };
    }
  | {
      readonly apiVersion: "trainer.kubeflow.org/v1alpha1";
      readonly kind: "TrainJob";
      readonly spec: {
        readonly runtimeRef: {
          readonly apiGroup: "trainer.kubeflow.org";
          readonly kind: "TrainingRuntime";
          readonly name: string;
        };
        readonly trainer: { readonly numNodes: number; readonly numProcPerNode?: number };
        readonly activeDeadlineSeconds?: number;
      };
    }
);
