import { library } from "../../tooling/tsup.ts";

export default library({
  entry: { main: "src/main.ts" },
  platform: "node",
  // A command: no program imports it.
  dts: false,
  // Packages that nobody publishes become a part of it.
  noExternal: ["@skein/measuring", "@skein/report"],
});
