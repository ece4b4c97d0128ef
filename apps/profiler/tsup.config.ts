import { library } from "../../tooling/tsup.ts";

export default library({
  entry: { main: "src/main.ts" },
  platform: "node",
  // Nothing imports this package, because it is a command, so it has no type declarations.
  dts: false,
  // Unpublished packages are bundled.
  noExternal: ["@skein/measuring", "@skein/report"],
});
