import { describeLayouts } from "../../../test/row-calls.ts";

// Columns that vectors of four divide; those that nothing divides are in `row-layout.full.test.ts`.
describeLayouts(5, 260);
