import { library } from "../../tooling/tsup.ts";

export default library({
  entry: { "create-skein": "src/create-skein.ts", main: "src/main.ts" },
  platform: "node",
  // no program imports this command
  dts: false,
  // Bundles the launcher, and the package.json files with the versions on which projects depend, as of this build.
  noExternal: [/^skein-train\//, /\/package\.json$/],
});
