import { createCpuBackend } from "@skein/cpu-kernels";
import { readProblem } from "../problems/problem-files.ts";
import { trainingStep } from "./training-step.ts";

// Train for `steps` steps in a fresh process. Prints one line of JSON with bytes resident, reserved for the arena, and
// in use in the arena, sampled every 50 steps without forcing garbage collection.
const [folder, steps] = [process.argv[2]!, Number(process.argv[3])];
const backend = await createCpuBackend();
const { step } = trainingStep(backend, readProblem(folder));
const resident: number[] = [];
const reserved: number[] = [];
const inUse: number[] = [];
let loss = Number.NaN;
for (let i = 0; i < steps; i++) {
  loss = await step();
  if (i % 50 === 49) {
    resident.push(process.memoryUsage.rss());
    reserved.push(backend.arena.bytesReserved);
    inUse.push(backend.arena.bytesInUse);
  }
}
console.log(JSON.stringify({ resident, reserved, inUse, loss }));
