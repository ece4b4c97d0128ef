#!/usr/bin/env node
import { surviveLostOutput, writeStderr } from "skein-train/profiling";
import { main } from "./command-line.ts";
import { exitCodes, explain } from "./errors.ts";

surviveLostOutput(exitCodes.failure);

/** What nobody has waited for, such as a thread of a package that could not be started. */
process.once("uncaughtException", (error) => {
  const { text, code } = explain(error);
  writeStderr(`${text}\n`);
  process.exit(code);
});

// A lone "--" is what package managers leave in front of the options.
process.exitCode = await main(process.argv.slice(2).filter((argument) => argument !== "--"));
