import type { ComputeType, Device } from "../hardware/hardware.ts";
import { roofline, type Work } from "../hardware/roofline.ts";

/** What a kernel is expected to take, and what holds it up. */
export interface OperatorSeconds {
  readonly seconds: number;
  readonly boundBy: "flops" | "bytes" | "start";
}

/**
 * Price a kernel on a device: start + roofline / assumed efficiency. Work of nothing takes nothing.
 *
 * @param type of the operands of a product; f32 for what is none.
 */
export const operatorSeconds = (
  device: Device,
  work: Work,
  type: ComputeType,
  efficiency: number = device.assumedEfficiency,
): OperatorSeconds => {
  const { kernelStartSeconds } = device;
  if (work.flops === 0 && work.bytes === 0) return { seconds: 0, boundBy: "start" };
  const { seconds, boundBy } = roofline(device, work, type);
  const working = seconds / efficiency;
  return { seconds: kernelStartSeconds + working, boundBy: working < kernelStartSeconds ? "start" : boundBy };
};
