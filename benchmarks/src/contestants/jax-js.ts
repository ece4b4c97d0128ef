import { readFileSync } from "node:fs";
import * as jax from "@jax-js/jax";
import { serve } from "../measure/serve.ts";
import { jaxContestant } from "./jax-js-contestant.ts";

await jax.init("wasm");
jax.defaultDevice("wasm");
const manifest = new URL("../package.json", import.meta.resolve("@jax-js/jax"));
await serve(jaxContestant(JSON.parse(readFileSync(manifest, "utf8")).version));
