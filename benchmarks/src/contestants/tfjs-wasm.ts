import { getThreadsCount, setThreadsCount } from "@tensorflow/tfjs-backend-wasm";
import * as tf from "@tensorflow/tfjs";
import { serve } from "../measure/serve.ts";
import { tfjsContestant } from "./tfjs-contestant.ts";

// The number of threads must be set before the backend starts, because the backend creates its threads when it starts.
setThreadsCount(1);
await tf.setBackend("wasm");
await tf.ready();
if (getThreadsCount() !== 1)
  throw new Error(
    `TensorFlow.js computes on ${getThreadsCount()} threads, though it was told to take one as the others do`,
  );
await serve(tfjsContestant());
