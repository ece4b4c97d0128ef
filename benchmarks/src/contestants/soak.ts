import { createCpuBackend } from "@skein/cpu-kernels";
import { readProblem } from "../problems/problem-files.ts";
import { trainingStep } from "./training-step.ts";

// Train for `steps` steps in a fresh process; one line of JSON: bytes resident, reserved for the arena and in use
// there, sampled every 50 steps as they are, with no garbage collection forced.
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
