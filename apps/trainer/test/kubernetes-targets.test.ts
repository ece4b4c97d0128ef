import {
  type Container,
  jobset,
  type JobSetSpec,
  type JobSpec,
  k8sJob,
  type KubernetesObject,
  type Launch,
  type LaunchOptions,
  type LaunchTarget,
  literal,
  longestObjectName,
  objectName,
  type PodTemplate,
  printObject,
  trainjob,
} from "@skein/launch/node";
import { ConfigMap, Secret, Service } from "kubernetes-models/v1";
import { Job } from "kubernetes-models/batch/v1";
import { NetworkPolicy } from "kubernetes-models/networking.k8s.io/v1";
import { describe, expect, test } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { discoverRank } from "../src/members/rank-discovery.ts";
import { clusterSchemas } from "./cluster-schemas.ts";
import { cluster, plan, secret } from "./launch-plans.ts";

const objectsOf = ({ submission }: Launch): KubernetesObject[] =>
  parseAllDocuments(submission.input, { version: "1.1" }).map((document) => document.toJS() as KubernetesObject);

const ofKind = <K extends KubernetesObject["kind"]>(
  objects: readonly KubernetesObject[],
  kind: K,
): Extract<KubernetesObject, { kind: K }> => {
  const found = objects.filter((object) => object.kind === kind);
  expect(found).toHaveLength(1);
  return found[0] as Extract<KubernetesObject, { kind: K }>;
};

const jobSetOf = (objects: readonly KubernetesObject[]): JobSetSpec | undefined => {
  for (const object of objects) {
    if (object.kind === "JobSet") return object.spec;
    if (object.kind === "TrainingRuntime") return object.spec.template.spec;
  }
  return undefined;
};

const jobsOf = (
  objects: readonly KubernetesObject[],
): { readonly name: string | undefined; readonly spec: JobSpec }[] => [
  ...objects.flatMap((object) => (object.kind === "Job" ? [{ name: undefined, spec: object.spec }] : [])),
  ...(jobSetOf(objects)?.replicatedJobs.map(({ name, template }) => ({ name, spec: template.spec })) ?? []),
];

const podsOf = (objects: readonly KubernetesObject[]): PodTemplate[] =>
  jobsOf(objects).map(({ spec }) => spec.template);
const containersOf = (objects: readonly KubernetesObject[]): Container[] =>
  podsOf(objects).flatMap(({ spec }) => spec.containers);
const variable = ({ env }: Container, name: string): string | undefined =>
  env.find((entry) => entry.name === name)?.value;

/** Options of each Kubernetes target, and of TrainJob over MPI. */
const manifests: readonly (readonly [
  name: string,
  target: LaunchTarget,
  options: Partial<LaunchOptions> & { readonly target: string },
])[] = [
  ["k8s-job", k8sJob, { target: "k8s-job", ...cluster }],
  ["jobset", jobset, { target: "jobset", ...cluster }],
  ["trainjob", trainjob, { target: "trainjob", ...cluster }],
  [
    "trainjob over MPI",
    trainjob,
    { target: "trainjob", image: cluster.image, claim: cluster.claim, transport: "mpi", nodes: "2", insecure: true },
  ],
];

test.each([
  ["k8s-job", k8sJob],
  ["jobset", jobset],
  ["trainjob", trainjob],
] as const)("%s gives each pod its own key only", (target, make) => {
  const objects = objectsOf(make(plan({ target, ...cluster, ranks: "4" }, { ranksPerProcess: 2 }), secret));
  const [pod] = podsOf(objects);
  const mount = pod!.spec.containers[0]!.volumeMounts.find(({ name }) => name === "certificates");
  expect(mount).toMatchObject({ readOnly: true, subPathExpr: "$(JOB_COMPLETION_INDEX)" });
  const volume = pod!.spec.volumes.find((candidate) => "projected" in candidate)!;
  if (!("projected" in volume)) return expect.unreachable();
  const { defaultMode, sources } = volume.projected;
  expect(defaultMode & 0o007).toBe(0);
  const filesOf = (index: string, optional: boolean): string[] =>
    sources
      .flatMap(({ secret: source }) =>
        source.name === cluster.certificates && (source.optional ?? false) === optional ? source.items : [],
      )
      .filter(({ path }) => path.split("/")[0] === index)
      .map(({ key, path }) => {
        expect(path).toBe(`${index}/${key}`);
        return key;
      });
  expect(filesOf("0", false).sort()).toEqual([
    "authority.pem",
    "coordinator.key.pem",
    "coordinator.pem",
    "rank-0.key.pem",
    "rank-0.pem",
  ]);
  expect(filesOf("1", false).sort()).toEqual(["authority.pem", "rank-2.key.pem", "rank-2.pem"]);
  for (const index of ["0", "1"]) expect(filesOf(index, true)).toEqual(["revoked.pem"]); // the file may be absent
  expect(sources.flatMap(({ secret: { items } }) => items)).toHaveLength(10);
});

const full = {
  ranks: "4",
  namespace: "ml",
  queue: "gpu-queue",
  gpus: "1",
  cpus: "3",
  memory: "6Gi",
  time: "01:00:00",
  maxRestarts: "5",
};

describe.each(manifests)("%s", (_, target, options) => {
  const small = objectsOf(target(plan(options), secret));
  const whole = objectsOf(target(plan({ ...options, ...full }), secret));

  test.each([
    ["with defaults", small],
    ["with every option", whole],
  ])("is valid %s, without keys unknown to the API", (__, objects) => {
    for (const object of objects) {
      const parsed = clusterSchemas[object.kind]!.safeParse(object);
      expect(parsed.error?.issues ?? [], object.kind).toEqual([]);
      const model = { ConfigMap, Secret, Service, NetworkPolicy, Job }[object.kind as "Job"];
      if (model !== undefined) new model(object as never).validate();
      expect(object.metadata.namespace).toBe(objects === whole ? "ml" : undefined);
    }
    for (const { spec } of jobsOf(objects)) new Job({ metadata: { name: "x" }, spec: spec as never }).validate();
  });

  test("gives each process its own index, and all of them their number", () => {
    const [ranks] = jobsOf(whole);
    const overMpi = options.transport === "mpi";
    const pods = jobsOf(whole).reduce((sum, { spec }) => sum + spec.completions, 0);
    expect(pods).toBe(overMpi ? 2 : 4);
    for (const { spec } of jobsOf(whole))
      expect(spec).toMatchObject({ completionMode: "Indexed", parallelism: spec.completions });
    if (overMpi) return; // mpirun sets the ranks
    const container = ranks!.spec.template.spec.containers[0]!;
    const worldSize = variable(container, "WORLD_SIZE")!;
    const ranksFound = Array.from(
      { length: pods },
      (___, index) => discoverRank({ JOB_COMPLETION_INDEX: String(index), WORLD_SIZE: worldSize })!.rank,
    );
    expect(ranksFound).toEqual([0, 1, 2, 3]);
  });

  test("makes all ranks meet at the DNS name of the first pod, on the opened port", () => {
    for (const portOption of [undefined, "4321"]) {
      const objects = objectsOf(target(plan({ ...options, ...(portOption && { port: portOption }) }), secret));
      const port = Number(portOption ?? 29410);
      const set = jobSetOf(objects);
      const host =
        set === undefined ? "mnist-0.mnist" : `mnist-${set.replicatedJobs[0]!.name}-0-0.${set.network.subdomain}`;
      const serving = containersOf(objects).filter(({ command }) => command[0] === "skein-train");
      for (const container of containersOf(objects))
        expect(variable(container, "SKEIN_COORDINATOR")).toBe(`${host}:${port}`);
      for (const { ports } of serving) expect(ports).toEqual([{ name: "rendezvous", containerPort: port }]);
      if (set !== undefined) continue;
      const service = ofKind(objects, "Service");
      const [pod] = podsOf(objects);
      expect(service.spec.ports.map((entry) => entry.port)).toEqual([port]);
      expect(pod!.spec.subdomain).toBe(service.metadata.name);
      expect(pod!.metadata.labels).toMatchObject(service.spec.selector);
    }
  });

  test("keeps the secret in the Secret, and passes it to ranks by reference", () => {
    const launch = target(plan(options), secret);
    const holders = objectsOf(launch).filter((object) => JSON.stringify(object).includes(secret));
    expect(holders.map(({ kind }) => kind)).toEqual(["Secret"]);
    expect(launch.submission.command.join(" ")).not.toContain(secret);
    const shown = launch.files.map(({ text, instead }) => instead ?? text).join("");
    expect(shown).not.toContain(secret);
    expect(shown).toContain("create secret generic mnist-secret --from-file=SKEIN_SECRET=/dev/stdin");
    for (const container of containersOf(objectsOf(launch))) {
      const entry = container.env.find(({ name }) => name === "SKEIN_SECRET")!;
      expect(entry).toEqual({
        name: "SKEIN_SECRET",
        valueFrom: { secretKeyRef: { name: "mnist-secret", key: "SKEIN_SECRET" } },
      });
    }
  });

  test("lets only its own pods reach them", () => {
    for (const objects of [small, whole]) {
      const { spec } = ofKind(objects, "NetworkPolicy");
      expect(spec.policyTypes).toEqual(["Ingress"]);
      const [{ from }, ...others] = spec.ingress as [(typeof spec.ingress)[0]];
      expect(others).toEqual([]);
      const selectors = [spec.podSelector, ...from.map(({ podSelector }) => podSelector)];
      const selects = ({ matchLabels }: (typeof selectors)[0], podLabels: Readonly<Record<string, string>>): boolean =>
        Object.entries(matchLabels).every(([name, value]) => podLabels[name] === value);
      for (const { metadata } of podsOf(objects)) {
        for (const selector of selectors) {
          expect(selects(selector, metadata.labels!)).toBe(true);
          expect(selects(selector, { ...metadata.labels, "app.kubernetes.io/instance": "another-run" })).toBe(false);
        }
      }
    }
  });

  test("passes restarts, time, queue and resources on", () => {
    const set = jobSetOf(whole);
    if (set === undefined)
      expect(ofKind(whole, "Job").spec).toMatchObject({
        backoffLimitPerIndex: 5,
        maxFailedIndexes: 0,
        activeDeadlineSeconds: 3600,
      });
    else {
      expect(set.failurePolicy.maxRestarts).toBe(5);
      for (const { spec } of jobsOf(whole)) expect(spec.backoffLimit).toBe(0); // one lost pod restarts all pods
    }
    const queued = whole.filter(({ metadata }) => metadata.labels?.["kueue.x-k8s.io/queue-name"] === "gpu-queue");
    expect(queued.map(({ kind }) => kind)).toEqual([
      { "k8s-job": "Job", jobset: "JobSet", trainjob: "TrainJob" }[options.target],
    ]);
    const deadlines = [
      ...jobsOf(whole).map(({ spec }) => spec.activeDeadlineSeconds),
      ...whole.map((object) => (object.kind === "TrainJob" ? object.spec.activeDeadlineSeconds : undefined)),
    ];
    expect(deadlines.filter((seconds) => seconds !== undefined)).toEqual([3600]);
    const each = options.transport === "mpi" ? 2 : 1; // number of processes per pod
    for (const { resources } of containersOf(whole)) {
      expect(resources.limits).toEqual({
        cpu: String(3 * each),
        memory: `${6 * each * 2 ** 20}Ki`,
        "nvidia.com/gpu": String(each),
      });
      expect(resources.requests).toEqual(resources.limits);
    }
  });

  test("never retries usage errors, counts retriable failures, and ignores pods evicted by the cluster", () => {
    for (const { spec } of jobsOf(whole)) {
      const rules = spec.podFailurePolicy!.rules;
      const onExit = (code: number): string | undefined =>
        rules.find(({ onExitCodes }) => onExitCodes?.values.includes(code))?.action;
      expect([2, 1, 75].map(onExit)).toEqual(["FailJob", "Count", "Count"]);
      expect(
        rules.filter(
          ({ onPodConditions, onExitCodes }) => onPodConditions !== undefined || onExitCodes?.values.includes(143),
        ),
      ).toHaveLength(2);
    }
    const set = jobSetOf(whole);
    if (set === undefined) return;
    /** Returns the action of a JobSet after a failure of a Job: the action of the first matching rule. */
    const action = (reason: string, message: string): string =>
      set.failurePolicy.rules.find(
        ({ onJobFailureReasons, onJobFailureMessagePatterns: patterns }) =>
          (onJobFailureReasons as readonly string[]).includes(reason) &&
          (patterns === undefined || patterns.some((pattern) => new RegExp(pattern).test(message))),
      )?.action ?? "RestartJobSet";
    // Returns a failure message in the wording of the Job controller.
    const exit = (code: number): string =>
      `Container node for pod ml/mnist-node-0-1-x failed with exit code ${code} matching FailJob rule at index 0`;
    expect(action("PodFailurePolicy", exit(2))).toBe("FailJobSet");
    for (const code of [130, 143])
      expect(action("PodFailurePolicy", exit(code))).toBe("RestartJobSetAndIgnoreMaxRestarts");
    expect(
      action(
        "PodFailurePolicy",
        "Pod ml/mnist-node-0-1-x has condition DisruptionTarget matching FailJob rule at index 1",
      ),
    ).toBe("RestartJobSetAndIgnoreMaxRestarts");
    expect(action("PodFailurePolicy", "words of another version")).toBe("FailJobSet"); // rather than forever
    expect(action("DeadlineExceeded", "Job was active longer than specified deadline")).toBe("FailJobSet");
    expect(action("BackoffLimitExceeded", "Job has reached the specified backoff limit")).toBe("RestartJobSet");
  });

  test("starts the same command again after a restart, on a claim that outlives pods", () => {
    const trained = containersOf(whole).find(({ command }) => command[0] === "skein-train")!;
    const { args } = trained;
    const output = args![args!.lastIndexOf("--output") + 1]!;
    expect(output).toBe("/output/mnist");
    if (options.transport !== "mpi") expect(args).toContain("--resume-if-possible"); // else skein-train reports it
    expect(trained.volumeMounts).toContainEqual({ name: "output", mountPath: "/output" });
    for (const { spec } of podsOf(whole))
      expect(spec.volumes).toContainEqual({ name: "output", persistentVolumeClaim: { claimName: "runs" } });
    for (const { spec } of podsOf(whole)) {
      const mounted = spec.containers.flatMap(({ volumeMounts }) => volumeMounts.map(({ name }) => name));
      expect([...new Set(mounted)].sort()).toEqual(spec.volumes.map(({ name }) => name).sort());
    }
  });
});

test("a rank's arguments survive the kubelet, which expands $(NAME)", () => {
  const nasty = ["--set", "name=$(HOME) $HOME $$(HOME) a$"];
  const [container] = containersOf(
    objectsOf(k8sJob({ ...plan({ target: "k8s-job", ...cluster }), overrides: nasty }, secret)),
  );
  // Expands text as documented by Kubernetes: $(NAME) is replaced by the variable, $$ becomes $, and any other $ is
  // kept.
  const kubelet = (text: string): string =>
    text.replace(/\$(\$|\((\w+)\))/g, (_, what: string, name: string) => (what === "$" ? "$" : `<${name}>`));
  expect(container!.args!.map(kubelet).filter((arg) => nasty.includes(arg))).toEqual(nasty);
  expect(kubelet(literal("$$$(A)$"))).toBe("$$$(A)$");
});

test("words with a special meaning in YAML 1.1 are printed as strings", () => {
  const data = Object.fromEntries(
    [
      "no",
      "on",
      "y",
      "1:30",
      "0755",
      "1e3",
      "~",
      "null",
      "",
      " x",
      "a: b",
      "#x",
      "0x1f",
      "1_000",
      "2026-11-21",
      "=",
      "<<",
      "'",
      '"',
      "line\nline\n",
      "- x",
      "\t",
      "é",
    ].map((word, i) => [`k${i}`, word]),
  );
  const object: KubernetesObject = {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: "x" },
    immutable: true,
    data,
  };
  for (const version of ["1.1", "1.2"] as const) expect(parse(printObject(object), { version })).toEqual(object);
});

describe("names of objects", () => {
  test.each([
    ["mnist", "mnist"],
    ["My.Run_7", "my-run-7"],
    ["7b", "skein-7b"],
    ["--", "skein"],
    ["a".repeat(40), "a".repeat(40)],
  ])("%s becomes %s", (text, name) => expect(objectName(text)).toBe(name));

  test("are DNS labels with room for the suffixes of operators, and long ones stay distinct", () => {
    const texts = Array.from({ length: 128 }, (_, i) => `${String.fromCharCode(i)}${"-x_".repeat(i % 30)}${i}`);
    const names = texts.map(objectName);
    for (const name of names) {
      expect(name).toMatch(/^[a-z]([-a-z0-9]*[a-z0-9])?$/);
      expect(name.length).toBeLessThanOrEqual(longestObjectName);
      expect(`${name}-launcher-0-99999-abcde`.length).toBeLessThanOrEqual(63);
    }
    expect(objectName(`${"a".repeat(60)}1`)).not.toBe(objectName(`${"a".repeat(60)}2`));
  });
});
