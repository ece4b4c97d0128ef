import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { jobJsonSchema } from "@skein/job/node";
import { bundlePage } from "@skein/watch/bundle-page";
import { library } from "../../tooling/tsup.ts";

const packages = join(import.meta.dirname, "../../packages");
/** Private workspace packages whose code is bundled into this package. */
const bundled = ["checkpoints", "cli", "job", "launch", "run-files", "step", "watch"];

export default library({
  entry: { index: "src/index.ts", main: "src/main.ts", profiling: "src/profiling.ts" },
  bundled: bundled.map((name) => `${packages}/${name}/src`),
  platform: "node",
  dts: {
    entry: { index: "src/index.ts", profiling: "src/profiling.ts" },
    // Declarations of packages that are found by their name are imported, but these packages are not published.
    compilerOptions: {
      isolatedDeclarations: false, // types of jobs are inferred from their schemas
      paths: {
        "@skein/report": [`${packages}/report/src/index.ts`],
        ...Object.fromEntries(bundled.map((name) => [`@skein/${name}/*`, [`${packages}/${name}/src/*.ts`]])),
      },
    },
  },
  // A clone bundles the page when it is asked for; what is published holds it ready.
  external: [/^node:/, "./bundle-page.ts"],
  onSuccess: async () => {
    const files = await bundlePage();
    mkdirSync("dist/watch-page", { recursive: true });
    writeFileSync("dist/job.schema.json", JSON.stringify(jobJsonSchema()));
    for (const [name, content] of files) writeFileSync(`dist/watch-page/${name}`, content);
  },
});
