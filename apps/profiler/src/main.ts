#!/usr/bin/env node
import { surviveLostOutput, writeStderr } from "skein-train/profiling";
import { main } from "./command-line.ts";
import { exitCodes, explain } from "./errors.ts";

surviveLostOutput(exitCodes.failure);

/** Reports errors that no caller awaits, such as a failed start of a package's thread. */
process.once("uncaughtException", (error) => {
  const { text, code } = explain(error);
  writeStderr(`${text}\n`);
  process.exit(code);
});

// Package managers pass a lone "--" before the options.
process.exitCode = await main(process.argv.slice(2).filter((argument) => argument !== "--"));
