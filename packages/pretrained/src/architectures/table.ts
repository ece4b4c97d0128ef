import type { Architecture } from "../architecture.ts";
import { gpt2Architecture } from "./gpt2.ts";
import { llamaArchitecture, mistralArchitecture, qwen2Architecture } from "./llama.ts";

/** By `model_type`. */
export const architectures: ReadonlyMap<string, Architecture> = new Map([
  ["gpt2", gpt2Architecture],
  ["llama", llamaArchitecture],
  ["mistral", mistralArchitecture],
  ["qwen2", qwen2Architecture],
]);
