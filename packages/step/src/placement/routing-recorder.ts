import { expertsOf } from "@skein/job/node";
import type { RoutingJson } from "@skein/run-files/node";
import { InvariantError } from "@skein/tensor-core";
import type { LiveState } from "../step/live-state.ts";
import { type ProbeInput, routingProbe } from "./routing-probe.ts";

export interface RoutingRecorderInput extends ProbeInput {
  /** Called with the routing of each expert layer, by layer name. */
  readonly routed: (step: number, layers: Readonly<Record<string, RoutingJson>>) => void;
}

/** Records the experts chosen by tokens at fixed intervals. */
export interface RoutingRecorder {
  /**
   * Reads and reports the routing after a step, if due. Must be called on all ranks. @param batch Batch of the step.
   */
  after(state: LiveState, batch: object): Promise<void>;
  release(): void;
}

/** Creates the routing recorder of a run. @returns undefined if the job does not record routing. */
export const routingRecorder = (input: RoutingRecorderInput): RoutingRecorder | undefined => {
  const experts = expertsOf(input.job);
  if (experts?.recordRouting === undefined) return undefined;
  const { count, recordRouting } = experts;
  const probe = routingProbe(input);
  return {
    after: async (live, batch) => {
      const step = live.done;
      if (step % recordRouting.everySteps !== 0) return;
      const routings = await probe(await live.settled(), batch, count);
      const layers = input.parts.model.experts?.layers;
      if (layers === undefined)
        throw new InvariantError("a model reports choices of experts, but no layers of experts");
      const json = routings.map((routing): RoutingJson => ({ ...routing, choices: [...routing.choices] }));
      input.routed(step, Object.fromEntries(layers.map(({ name }, i) => [name, json[i]!])));
    },
    release: () => probe.release(),
  };
};
