import { composedCases } from "@skein/testing";
import { describeConformance } from "./conformance-rows.ts";

// By default, these functions are only tested on the CPU, because their operators have their own rows here.
describeConformance(composedCases, { values: () => true, gradient: () => true });
