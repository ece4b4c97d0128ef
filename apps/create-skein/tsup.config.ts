import { library } from "../../tooling/tsup.ts";

export default library({
  entry: { "create-skein": "src/create-skein.ts", main: "src/main.ts" },
  platform: "node",
  // A command: no program imports it.
  dts: false,
  // The launcher, and the versions of what projects depend on, as they were when this was built.
  noExternal: [/^skein-train\//, /\/package\.json$/],
});
