import { library } from "../../tooling/tsup.ts";

export default library({
  entry: { main: "src/main.ts" },
  platform: "node",
  // A command: nothing imports this package, so it has no type declarations.
  dts: false,
  // Unpublished packages are bundled.
  noExternal: ["@skein/measuring", "@skein/report"],
});
