import { setThreadsCount } from "@tensorflow/tfjs-backend-wasm";
import * as tf from "@tensorflow/tfjs";
import { serve } from "../measure/serve.ts";
import { tfjsContestant } from "./tfjs-contestant.ts";

await tf.setBackend("wasm");
await tf.ready();
setThreadsCount(1);
await serve(tfjsContestant());
