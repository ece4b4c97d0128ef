import type { Architecture } from "../architecture.ts";
import { llamaArchitecture, mistralArchitecture, qwen2Architecture } from "./llama.ts";

/** By `model_type`. */
export const architectures: ReadonlyMap<string, Architecture> = new Map([
  ["llama", llamaArchitecture],
  ["mistral", mistralArchitecture],
  ["qwen2", qwen2Architecture],
]);
