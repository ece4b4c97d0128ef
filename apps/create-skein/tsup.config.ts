import { library } from "../../tooling/tsup.ts";

export default library({
  entry: { "create-skein": "src/create-skein.ts", main: "src/main.ts" },
  platform: "node",
  // A command: no program imports it.
  dts: false,
  // The launcher, and the package.json files with the versions that projects depend on, as of this build.
  noExternal: [/^skein-train\//, /\/package\.json$/],
});
