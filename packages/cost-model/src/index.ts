export {
  allInOne,
  backwardSeconds,
  forwardSeconds,
  type GradientProfile,
  onePerTensor,
  type ProfiledTensor,
} from "./gradient-profile.ts";
export { collectiveModelOfGroup } from "./group-collective-model.ts";
export {
  type CollectiveModel,
  collectiveSeconds,
  type LinearCollectiveModel,
  type CollectivePiece,
  type PiecewiseCollectiveModel,
} from "./collective-model.ts";
export { type Slowdown, simultaneousTimeline, twoAtOnce } from "./simultaneous-timeline.ts";
export { type CollectiveSpan, overlapBound, type Timeline, timelineOf } from "./timeline.ts";
export { gigabitsPerSecond, kibibytes, mebibytes, microseconds, milliseconds } from "./units.ts";
