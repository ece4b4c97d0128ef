import type { Architecture } from "../architecture.ts";
import { bertArchitecture } from "./bert.ts";
import { gpt2Architecture } from "./gpt2.ts";
import { llamaArchitecture, mistralArchitecture, qwen2Architecture } from "./llama.ts";
import { resnetArchitecture } from "./resnet.ts";
import { vitArchitecture } from "./vit.ts";

/** Supported architectures, by `model_type`. */
export const architectures: ReadonlyMap<string, Architecture> = new Map([
  ["bert", bertArchitecture],
  ["gpt2", gpt2Architecture],
  ["llama", llamaArchitecture],
  ["mistral", mistralArchitecture],
  ["qwen2", qwen2Architecture],
  ["resnet", resnetArchitecture],
  ["vit", vitArchitecture],
]);

/** Values of `model_type` in the transformers library that are not supported, but look like a supported value. */
export const otherModelTypes: ReadonlySet<string> = new Set(
  [
    "bart beit bit git gptj llama4 llava ministral ministral3 mistral3 mistral4",
    "mixtral mllama qwen qwen3 regnet vilt vits",
  ].flatMap((names) => names.split(" ")),
);
