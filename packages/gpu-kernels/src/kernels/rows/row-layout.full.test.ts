import { describeLayouts, rowOps } from "../../../test/row-calls.ts";

describeLayouts(rowOps, 5, 260);
describeLayouts(rowOps, 3, 1033);
