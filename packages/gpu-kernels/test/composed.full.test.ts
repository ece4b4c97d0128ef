import { composedCases } from "@skein/testing";
import { describeConformance } from "./conformance-rows.ts";

// By default only on the CPU: the operators that these functions are made of have rows of their own here.
describeConformance(composedCases, { values: () => true, gradient: () => true });
