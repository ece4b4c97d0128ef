import data from "@skein/data/package.json" with { type: "json" };
import models from "@skein/models/package.json" with { type: "json" };
import tensorCore from "@skein/tensor-core/package.json" with { type: "json" };
import trainer from "skein-train/package.json" with { type: "json" };
import typescript from "typescript/package.json" with { type: "json" };
import zod from "zod/package.json" with { type: "json" };
import { type Template, templates } from "./templates.ts";

/** Skein packages that each project depends on, at exactly this release, the version that was tested. */
const ours: Readonly<Record<string, string>> = Object.fromEntries(
  [data, models, tensorCore, trainer].map(({ name, version }) => [name, version]),
);

const forDevelopment: Readonly<Record<string, string>> = {
  "@types/node": "^24.10.1", // the version that we compile with; its package does not export its version
  typescript: `^${typescript.version}`,
};

const others: Readonly<Record<string, string>> = { ...trainer.peerDependencies, zod: `^${zod.version}` };

/** Names that a project cannot have, because the project depends on packages of the same name. */
export const takenNames: readonly string[] = [
  ...Object.keys({ ...ours, ...forDevelopment, ...others }),
  ...Object.keys(trainer.dependencies),
];

/** Packages whose install script is skipped. The scripts only make the packages faster. */
export const unbuilt: readonly string[] = ["msgpackr-extract"];

/** Returns the `package.json` of a project. */
export const manifestOf = (name: string, template: Template): object => ({
  name,
  version: "0.0.0",
  private: true,
  type: "module",
  engines: trainer.engines,
  scripts: {
    ...Object.fromEntries(
      Object.entries(templates[template].jobs).map(([script, job]) => [script, `skein-train run ${job}`]),
    ),
    resume: "skein-train resume runs",
    watch: "skein-train watch runs",
    test: "node --test",
    typecheck: "tsc",
  },
  dependencies: Object.fromEntries(
    [...Object.entries(ours), ...templates[template].packages.map((each) => [each, others[each]!] as const)].toSorted(
      ([a], [b]) => (a < b ? -1 : 1),
    ),
  ),
  devDependencies: forDevelopment,
  // For npm, which warns otherwise. pnpm reads its own file.
  allowScripts: Object.fromEntries(unbuilt.map((each) => [each, false])),
});
