import { conformanceCases } from "@skein/testing";
import { describeRows } from "./browser-rows.ts";

await describeRows(conformanceCases);
