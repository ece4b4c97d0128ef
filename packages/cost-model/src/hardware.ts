// Entry point for descriptions of hardware.
export type {
  CalibratedRun,
  ClusterLinks,
  ComputeType,
  Contention,
  ComputeDevice,
  HardwareCalibration,
  HardwareFile,
  MeasuredEfficiency,
  RunningCosts,
  Topology,
  TransferTimes,
} from "./hardware/hardware.ts";
export { hostsOfGroup } from "./hardware/hosts-of-group.ts";
export { linksOfGroup } from "./hardware/links-of-group.ts";
export { type Roofline, roofline, type Work } from "./hardware/roofline.ts";
export { hardwareNamed, shippedHardware } from "./hardware/shipped/index.ts";
