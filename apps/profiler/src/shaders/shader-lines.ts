import type { ListedShader } from "skein-train/profiling";

/** Shaders one below the other, each below a comment that says what it is: the whole is WGSL text. */
export const shaderLines = (shaders: readonly ListedShader[]): string[] =>
  shaders.flatMap(({ operators, labels, dispatches, code }, i) => [
    ...(i > 0 ? [""] : []),
    `// ${operators.join(", ")}: ${labels.join("; ")}`,
    `// shader ${i + 1} of ${shaders.length}, ${dispatches} dispatch${dispatches === 1 ? "" : "es"}`,
    ...code.trimEnd().split("\n"),
  ]);
