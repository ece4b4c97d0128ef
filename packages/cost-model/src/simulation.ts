// Entry point for simulations of training steps and of collectives on many ranks.
export type { JitterOptions } from "./simulation/jitter.ts";
export {
  simulate,
  type SimulatedCollective,
  type SimulatedStep,
  type SimulationOptions,
} from "./simulation/simulate.ts";
export { type ScheduleTimes, simulateSchedule, type SimulatedCollectiveSize } from "./simulation/simulate-schedule.ts";
export type {
  CollectiveTask,
  ComputeTask,
  LinkStream,
  CollectivePhase,
  Program,
  SimulatedWorld,
  SimulatedTask,
  WaitTask,
} from "./simulation/task.ts";
