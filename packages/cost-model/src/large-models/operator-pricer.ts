import type { ComputeType, Device } from "../hardware/hardware.ts";
import { roofline, type Work } from "../hardware/roofline.ts";

/** What a kernel is expected to take, and what holds it up. */
export interface OperatorPrice {
  readonly seconds: number;
  readonly boundBy: "flops" | "bytes" | "start";
}

/** Prices a kernel of an operator. @param type of the operands of a product; f32 for what is none. */
export type OperatorPricer = (operator: string, work: Work, type: ComputeType) => OperatorPrice;

/** Price kernels on a device: start + roofline / efficiency, with the efficiency that is assumed for all of them. */
export const operatorPricer =
  (device: Device): OperatorPricer =>
  (_operator, work, type) => {
    const { kernelStartSeconds, assumedEfficiency } = device;
    const { seconds, boundBy } = roofline(device, work, type);
    const working = seconds / assumedEfficiency;
    return { seconds: kernelStartSeconds + working, boundBy: working < kernelStartSeconds ? "start" : boundBy };
  };
