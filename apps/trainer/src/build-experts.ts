import type { GptExperts } from "@skein/models";
import { capacityByFactor, capacityByMaximum, geluExperts, moeLayer, switchGate } from "@skein/moe-parallel";
import type { ExpertsJob } from "./job.ts";
import { dataAxis, expertAxis } from "./mesh.ts";

/** The experts of a GPT. @param width of a token. */
export const buildExperts = (job: ExpertsJob, width: number): GptExperts => {
  const { count, topK, every, capacity, normalisation } = job;
  const hidden = job.hidden ?? Math.ceil((4 * width) / topK);
  const layer = moeLayer({
    gate: switchGate({ width, numExperts: count }),
    experts: geluExperts({ width, hidden }),
    capacity: capacity === "all" ? capacityByMaximum() : capacityByFactor({ factor: capacity }),
    normalisation,
    axis: expertAxis,
    tokenAxes: [dataAxis],
  });
  return {
    layer: layer as GptExperts["layer"],
    every,
    sharding: (path) => (path.startsWith("experts.") ? { axis: expertAxis, dim: 0 } : undefined),
  };
};
