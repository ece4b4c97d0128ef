import { ArgumentError } from "@skein/tensor-core";
import {
  deviceHere,
  type JobOptions,
  jobShaders,
  minimalDevice,
  type ListedShader,
  writeStdout,
} from "skein-train/profiling";
import { exitCodes } from "../errors.ts";
import { callOf, type CallOptions } from "../shaders/call.ts";
import { shadersOfCall } from "../shaders/shaders-of-call.ts";

export interface ShadersCommandOptions extends CallOptions, Pick<JobOptions, "ranks" | "set"> {
  readonly job?: string;
  readonly device: "least" | "here";
}

/** Formats shaders as valid WGSL text; a comment before each shader names its operators. */
const shaderLines = (shaders: readonly ListedShader[]): string[] =>
  shaders.flatMap(({ operators, labels, dispatches, code }, i) => [
    ...(i > 0 ? [""] : []),
    `// ${operators.join(", ")}: ${labels.join("; ")}`,
    `// shader ${i + 1} of ${shaders.length}, ${dispatches} dispatch${dispatches === 1 ? "" : "es"}`,
    ...code.trimEnd().split("\n"),
  ]);

/** Implements `skein-profile shaders`: prints the WGSL shaders of a tensor function, or of a job's step. */
export const shadersCommand = async (
  name: string | undefined,
  { job, device, ranks, set = [], ...call }: ShadersCommandOptions,
): Promise<number> => {
  if ((name === undefined) === (job === undefined))
    throw new ArgumentError(
      `shaders takes either a tensor function or --job <file>, got ${name === undefined ? "neither" : "both"}; as in "shaders matmul --shapes 128x256,256x64"`,
    );
  let shaders: readonly ListedShader[];
  if (name !== undefined) {
    const made = callOf(name, call);
    shaders = shadersOfCall(made, device === "least" ? minimalDevice : await deviceHere());
  } else {
    const facts = device === "least" ? minimalDevice : await deviceHere();
    shaders = await jobShaders(job!, { ...(ranks !== undefined && { ranks }), set }, facts);
  }
  for (const line of shaderLines(shaders)) writeStdout(`${line}\n`);
  return exitCodes.ok;
};
