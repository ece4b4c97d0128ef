import { RunError } from "@skein/cli/node";
import { expertReplicasAxis, type Job } from "@skein/job/node";
import type { MovedLayer } from "@skein/run-files/node";
import {
  type Backend,
  type Communicator,
  type Communicators,
  type DeviceArray,
  elementCount,
} from "@skein/tensor-core";
import { causesOfDrift } from "../step/replica-check.ts";
import type { LiveState } from "../step/live-state.ts";
import type { ExchangePlan } from "../plans/exchange-plan.ts";
import { type SettledExperts, settledExperts } from "../plans/experts-plan.ts";
import type { DeviceState, Parts } from "../step/train-state.ts";
import { type ExpertLayer, expertLayersOf, leavesAt } from "./expert-layers.ts";
import { ExpertMover } from "./expert-mover.ts";
import { planSlots, type PlannedSlots } from "./plan-places.ts";
import { movableExperts } from "../plans/movable-experts.ts";
import { routingProbe } from "./routing-probe.ts";

export interface RePlacementInput {
  readonly job: Job;
  readonly parts: Parts;
  readonly backend: Backend;
  readonly communicators: Communicators;
  /** Communicator of all ranks. */
  readonly world: Communicator;
  readonly plan: ExchangePlan | undefined;
  /** Called after each move of experts. */
  readonly moved: (step: number, layers: readonly MovedLayer[], seconds: number) => void;
}

/** Moves the experts of a run to better ranks at fixed intervals. */
export interface RePlacement {
  /**
   * Plans and moves experts after a step, if a move is due. Decisions depend only on the state and the batch, so a step
   * repeated after a failure leads to the same decisions. Must be called on all ranks.
   *
   * @param batch This rank's share of the step's batch.
   * @throws RunError if ranks decide differently.
   */
  after(state: LiveState, batch: object): Promise<void>;
  release(): void;
}

const float32Bytes = 4;

/** Whether a token is sent once per chosen expert, for each dispatch method. */
const sendsEachChoice: Readonly<Record<SettledExperts["dispatch"], boolean>> = {
  dense: true,
  ragged: true,
  hierarchical: true,
  "duplicate-free": false,
};

/** Creates the object that moves the experts of a run. @returns undefined if the job does not move experts. */
export const rePlacement = (input: RePlacementInput): RePlacement | undefined => {
  const { job, parts, backend, world, plan, moved } = input;
  const movable = movableExperts(job);
  if (movable === undefined) return undefined;
  const { experts, placement, width } = movable;
  const mover = new ExpertMover(input);
  const probe = placement.planner === "swap" ? routingProbe(input) : undefined;

  const numbersOf = async (leaf: DeviceArray): Promise<number[]> => (await backend.download(leaf)).toNumbers();

  const planLayer = async (
    state: DeviceState,
    layer: ExpertLayer,
    routing: Parameters<typeof planSlots>[1]["routing"],
  ): Promise<{ readonly before: readonly number[]; readonly planned: PlannedSlots | undefined }> => {
    const [places, loads] = leavesAt(state, [layer.places, layer.loads]);
    const before = await numbersOf(places!);
    const rowBytes = leavesAt(state, layer.rows).map(({ shape }) => float32Bytes * elementCount(shape.slice(1)));
    const planned = planSlots(
      placement,
      { places: before, loads: await numbersOf(loads!), routing },
      {
        numRanks: job.mesh.expert,
        numReplicas: parts.mesh[expertReplicasAxis] ?? 1,
        bytesPerToken: float32Bytes * width,
        bytesPerExpert: rowBytes.reduce((sum, bytes) => sum + bytes, 0),
        sendsEachChoice: sendsEachChoice[settledExperts(experts, job.mesh, plan?.experts).dispatch],
        line: plan?.expertExchange,
      },
    );
    return { before, planned };
  };

  /**
   * Throws unless all ranks made equal decisions. After unequal decisions, ranks would deadlock or train wrong experts.
   */
  const requireSameDecision = async (
    step: number,
    decided: readonly (readonly number[] | undefined)[],
  ): Promise<void> => {
    const own = JSON.stringify(decided);
    const all = await world.exchangeTexts(own);
    const other = all.findIndex((text) => text !== all[0]);
    if (other !== -1)
      throw new RunError(
        "replicas-differ",
        `step ${step}: rank ${other} would place experts at ${all[other]}, rank 0 at ${all[0]}; ranks must decide from a state that is the same on all of them. ` +
          `${causesOfDrift}, then continue with skein-train resume from the last checkpoint`,
      );
  };

  return {
    after: async (live, batch) => {
      const step = live.done;
      if (step % placement.everySteps !== 0) return;
      const began = performance.now();
      const settled = await live.settled();
      const layers = expertLayersOf(parts, settled);
      const routings = await probe?.(settled, batch, experts.count);
      const plans = [];
      for (const [i, layer] of layers.entries()) plans.push(await planLayer(settled, layer, routings?.[i]));
      await requireSameDecision(
        step,
        plans.map(({ planned }) => planned?.places),
      );
      const movedLayers: MovedLayer[] = [];
      for (const [i, layer] of layers.entries()) {
        const { before, planned } = plans[i]!;
        if (planned === undefined) continue;
        await live.replace((state) => mover.move(state, layer, { before, after: planned.places }));
        const { moves, busiestBefore, busiestAfter, gain } = planned;
        movedLayers.push({
          layer: layer.name,
          moves: moves.length,
          busiestBefore,
          busiestAfter,
          ...(gain !== undefined && { gainSeconds: gain.gainSeconds }),
        });
      }
      if (movedLayers.length > 0) moved(step, movedLayers, (performance.now() - began) / 1000);
    },
    release: () => {
      mover.release();
      probe?.release();
    },
  };
};
