import { mkdirSync, writeFileSync } from "node:fs";
import { bundlePage } from "@skein/watch/bundle-page";
import { library } from "../../tooling/tsup.ts";
import { jobJsonSchema } from "./src/job/job-schema.ts";

export default library({
  entry: { index: "src/index.ts", main: "src/main.ts", profiling: "src/profiling.ts" },
  bundled: ["checkpoints", "run-files", "watch"].map((name) => `../../packages/${name}/src`),
  platform: "node",
  dts: { entry: { index: "src/index.ts", profiling: "src/profiling.ts" } },
  // A clone bundles the page when it is asked for; what is published holds it ready.
  external: [/^node:/, "./bundle-page.ts"],
  onSuccess: async () => {
    const files = await bundlePage();
    mkdirSync("dist/watch-page", { recursive: true });
    writeFileSync("dist/job.schema.json", JSON.stringify(jobJsonSchema()));
    for (const [name, content] of files) writeFileSync(`dist/watch-page/${name}`, content);
  },
});
