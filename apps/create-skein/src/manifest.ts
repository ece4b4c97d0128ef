import data from "@skein/data/package.json" with { type: "json" };
import models from "@skein/models/package.json" with { type: "json" };
import tensorCore from "@skein/tensor-core/package.json" with { type: "json" };
import trainer from "skein-train/package.json" with { type: "json" };
import typescript from "typescript/package.json" with { type: "json" };
import zod from "zod/package.json" with { type: "json" };
import { type Template, templates } from "./templates.ts";

/**
 * Versions of the Skein packages that each project depends on: exactly the current versions, which were tested
 * together.
 */
const ours: Readonly<Record<string, string>> = Object.fromEntries(
  [data, models, tensorCore, trainer].map(({ name, version }) => [name, version]),
);

const forDevelopment: Readonly<Record<string, string>> = {
  "@types/node": "^24.10.1", // the version used to compile this package; @types/node does not export its version
  typescript: `^${typescript.version}`,
};

const others: Readonly<Record<string, string>> = { ...trainer.peerDependencies, zod: `^${zod.version}` };

/** Names that a project cannot have, because the project depends on packages with these names. */
export const takenNames: readonly string[] = [
  ...Object.keys({ ...ours, ...forDevelopment, ...others }),
  ...Object.keys(trainer.dependencies),
];

/** Packages whose install script is skipped, because the scripts only make the packages faster. */
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
  // For npm, which otherwise prints a warning. pnpm reads its own settings file.
  allowScripts: Object.fromEntries(unbuilt.map((each) => [each, false])),
});
