import type { ListedShader } from "skein-train/profiling";

/** Formats shaders as valid WGSL text; a comment before each shader names its operators. */
export const shaderLines = (shaders: readonly ListedShader[]): string[] =>
  shaders.flatMap(({ operators, labels, dispatches, code }, i) => [
    ...(i > 0 ? [""] : []),
    `// ${operators.join(", ")}: ${labels.join("; ")}`,
    `// shader ${i + 1} of ${shaders.length}, ${dispatches} dispatch${dispatches === 1 ? "" : "es"}`,
    ...code.trimEnd().split("\n"),
  ]);
