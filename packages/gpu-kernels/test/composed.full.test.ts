import { composedCases } from "@skein/testing";
import { describeConformance } from "./conformance-rows.ts";

// By default only on the CPU, because the operators of these functions have their own rows here.
describeConformance(composedCases, { values: () => true, gradient: () => true });
