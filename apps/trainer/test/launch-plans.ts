import { type LaunchContext, type LaunchOptions, type LaunchPlan, makeLaunchPlan } from "@skein/launch/node";
export const job: LaunchContext["job"] = {
  path: "/home/me/my jobs/mnist's $best.yaml",
  text: "name: mnist\nranks: 2\n",
  name: "mnist",
  ranks: 2,
  transport: "threads",
  ranksPerProcess: 1,
  certificates: undefined,
  insecure: false,
  relativePaths: [],
};

/** Returns the launch plan of a job with some options and overrides of its file. */
export const plan = (
  options: Partial<LaunchOptions> & { readonly target: string },
  changes: Partial<LaunchContext["job"]> = {},
): LaunchPlan =>
  makeLaunchPlan(
    { set: [], ...options },
    { job: { ...job, ...changes }, program: ["/opt/node/bin/node", "/opt/skein train/main.js"] },
  );

/** Options required by all Kubernetes targets. */
export const cluster = { image: "registry.example/skein:1", claim: "runs", certificates: "skein-certs" };
export const secret: string = "5ec2e7".repeat(10);
