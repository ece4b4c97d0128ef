import { packagesStage } from "./stages/packages.ts";

const checks = await packagesStage(process.argv.includes("--full"));
for (const { name, status, detail } of checks)
  console.log(`${status.padEnd(7)} ${name}${detail === undefined ? "" : `\n${detail}`}`);
process.exitCode = checks.every(({ status }) => status === "passed") ? 0 : 1;
