import data from "@skein/data/package.json" with { type: "json" };
import models from "@skein/models/package.json" with { type: "json" };
import tensorCore from "@skein/tensor-core/package.json" with { type: "json" };
import trainer from "skein-train/package.json" with { type: "json" };
import typescript from "typescript/package.json" with { type: "json" };
import zod from "zod/package.json" with { type: "json" };
import { type Template, templates } from "./templates.ts";

/** What each project depends on: the release that this program is of, exactly, so that it stays as it was tried. */
const ours: Readonly<Record<string, string>> = Object.fromEntries(
  [data, models, tensorCore, trainer].map(({ name, version }) => [name, version]),
);

const forDevelopment: Readonly<Record<string, string>> = {
  "@types/node": "^24.10.1", // what we compile with; its package gives no version to programs
  typescript: `^${typescript.version}`,
};

const others: Readonly<Record<string, string>> = { ...trainer.peerDependencies, zod: `^${zod.version}` };

/** Names that a project cannot have, since it depends on packages that are called so. */
export const takenNames: readonly string[] = [
  ...Object.keys({ ...ours, ...forDevelopment, ...others }),
  ...Object.keys(trainer.dependencies),
];

/** Packages whose script is left out when they are installed: it makes them faster, and they do without. */
export const unbuilt: readonly string[] = ["msgpackr-extract"];

/** The `package.json` of a project. */
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
  // For npm, which warns otherwise. pnpm has a file of its own.
  allowScripts: Object.fromEntries(unbuilt.map((each) => [each, false])),
});
