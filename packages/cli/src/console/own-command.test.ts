import { expect, onTestFinished, test, vi } from "vitest";
import { asTyped, asTypedIn, ownCommand, reportLine, resumeLine, type Surroundings } from "./own-command.ts";

const launcher = "/home/ada/project/node_modules/skein-train/bin/skein-train.js";
const local = "/home/ada/project/node_modules/.bin/skein-train";

/** Returns the environment of a machine with Node on PATH. Links in command folders point to the launcher. */
const machine = ({
  files = [],
  ...own
}: Partial<Surroundings> & { readonly files?: readonly string[] } = {}): Surroundings => ({
  program: local,
  node: "/usr/bin/node",
  nodeOptions: [],
  folder: "/home/ada/project",
  env: { PATH: "/usr/local/bin:/usr/bin" },
  exists: (path) => ["/usr/bin/node", ...files].includes(path),
  real: (path) => (path.endsWith("bin/skein-train") ? launcher : path),
  ...own,
});

const npm = {
  PATH: "/home/ada/project/node_modules/.bin:/usr/bin",
  npm_config_user_agent: "npm/11.19.1 node/v24.21.0 linux x64",
};
const pnpm = {
  PATH: "/home/ada/project/node_modules/.bin:/usr/bin",
  npm_config_user_agent: "pnpm/12.21.0 npm/? node/? linux x64",
};

test.each<[string, Surroundings, string]>([
  ["npx", machine({ env: { ...npm, INIT_CWD: "/home/ada/project" } }), "npx skein-train"],
  [
    "npm run in a folder below",
    machine({ env: { ...npm, INIT_CWD: "/home/ada/project/src" } }),
    "cd .. && npx skein-train",
  ],
  ["pnpm exec", machine({ env: pnpm, files: [local] }), "pnpm exec skein-train"],
  [
    "pnpm by npx",
    machine({ env: { ...pnpm, npm_execpath: "/home/ada/.npm/_npx/03/node_modules/pnpm/pnpm" }, files: [local] }),
    "npx --yes pnpm@12.21.0 exec skein-train",
  ],
  [
    "pnpm --filter from the root",
    machine({
      env: { ...pnpm, INIT_CWD: "/home/ada/project" },
      folder: "/home/ada/project/apps/my trainer",
      files: [local],
    }),
    "pnpm -C 'apps/my trainer' exec skein-train",
  ],
  ["pnpm dlx, which leaves nothing behind", machine({ env: pnpm }), "node node_modules/.bin/skein-train"],
  [
    "a bin on PATH",
    machine({ program: "/usr/local/bin/skein-train", files: ["/usr/local/bin/skein-train"] }),
    "skein-train",
  ],
  ["a bin that is not on PATH", machine({ files: [local] }), "node node_modules/.bin/skein-train"],
  [
    "the source",
    machine({ program: "/opt/skein/src/main.ts", nodeOptions: ["--conditions=x"], env: npm }),
    "node --conditions=x /opt/skein/src/main.ts",
  ],
  [
    "another Node than that on PATH",
    machine({ program: "main.js", node: "/opt/node 24/bin/node" }),
    "'/opt/node 24/bin/node' main.js",
  ],
  [
    "a Node that only the package manager has on PATH",
    machine({
      program: "main.js",
      env: pnpm,
      node: "/home/ada/project/node_modules/.bin/node",
      files: ["/home/ada/project/node_modules/.bin/node"],
    }),
    "/home/ada/project/node_modules/.bin/node main.js",
  ],
])("%s gives a command that works when pasted", (_, surroundings, expected) => {
  expect(ownCommand(surroundings)).toBe(expected);
});

test("another program of ours uses its own name", () => {
  const profiler = (path: string): string => path.replaceAll("skein-train", "skein-profile");
  const surroundings = machine({
    program: profiler(local),
    real: (path) => (path.endsWith("bin/skein-profile") ? profiler(launcher) : path),
  });
  expect(ownCommand({ ...surroundings, env: npm }, "skein-profile")).toBe("npx skein-profile");
  const inProject = { ...surroundings, env: pnpm, exists: (path: string) => path === profiler(local) };
  expect(ownCommand(inProject, "skein-profile")).toBe("pnpm exec skein-profile");
  // In a project that does not depend on skein-train, there is no command of that name.
  expect(ownCommand({ ...inProject, program: launcher }, "skein-train")).toMatch(
    /^\S*node node_modules\/skein-train\/bin\/skein-train\.js$/,
  );
});

test("a text may contain commands of both programs", () => {
  vi.stubEnv("PATH", "/nowhere");
  vi.stubEnv("npm_config_user_agent", undefined);
  onTestFinished(() => void vi.unstubAllEnvs());
  const text = asTypedIn(
    "skein-profile",
    ["run", "links"],
    "apps/trainer/bin/skein-train.js",
    "skein-profile links, then skein-train links; skein-profile is good",
  );
  expect(text).toMatch(/^\S.* links, then \S.*apps\/trainer\/bin\/skein-train\.js links; skein-profile is good$/);
  expect(text).not.toMatch(/^skein-profile/);
});

test("commands in messages are replaced by the typed command; other words and paths stay", () => {
  expect(asTyped(`continue with: ${resumeLine("my runs/1")}`, () => "npx skein-train")).toBe(
    "continue with: npx skein-train resume 'my runs/1'",
  );
  const untouched = "needs --image with skein-train on its PATH, not /opt/skein-train run";
  expect(asTyped(untouched, () => "npx skein-train")).toBe(untouched);
  expect(asTyped("make new ones with skein-train certs renew (or init)", () => "$& x")).toBe(
    "make new ones with $& x certs renew (or init)",
  );
  for (const line of [reportLine("runs/1"), "skein-train blas build", "skein-train mpi build", "skein-train schema"])
    expect(asTyped(line, () => "npx skein-train")).toBe(`npx ${line}`);
});
