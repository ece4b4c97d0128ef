import { mkdirSync, writeFileSync } from "node:fs";
import { library } from "../../tooling/tsup.ts";
import { jobJsonSchema } from "./src/job/job-schema.ts";
import { bundlePage } from "./src/watch/bundle-page.ts";

export default library({
  entry: { index: "src/index.ts", main: "src/main.ts", profiling: "src/profiling.ts" },
  platform: "node",
  dts: {
    entry: { index: "src/index.ts", profiling: "src/profiling.ts" },
    compilerOptions: { isolatedDeclarations: false }, // types of jobs are inferred from their schemas
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
