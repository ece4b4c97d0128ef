import { describeLayouts } from "../../../test/row-calls.ts";

describeLayouts(3, 1033);
