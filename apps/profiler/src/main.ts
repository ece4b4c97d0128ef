#!/usr/bin/env node
import { surviveLostOutput } from "skein-train/profiling";
import { main } from "./command-line.ts";
import { exitCodes } from "./errors.ts";

surviveLostOutput(exitCodes.failure);

// A lone "--" is what package managers leave in front of the options.
process.exitCode = await main(process.argv.slice(2).filter((argument) => argument !== "--"));
