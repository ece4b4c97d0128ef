#!/usr/bin/env node
import { main } from "./command-line.ts";

for (const stream of [process.stdout, process.stderr]) {
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error; // a reader that has gone, such as `head`
  });
}

// A lone "--" is what package managers leave in front of the options.
process.exitCode = await main(process.argv.slice(2).filter((argument) => argument !== "--"));
