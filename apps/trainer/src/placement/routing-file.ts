import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import {
  recordRouting,
  type RoutingRecord,
  routingRecord,
  routingRecordFromJson,
  type RoutingRecordJson,
  routingRecordToJson,
} from "@skein/moe-parallel";
import { nodeFiles, replaceDurably } from "../checkpoint/files.ts";

export const routingFile = "routing.json";

/** A routing as it is sent. */
export interface RoutingJson {
  readonly numExperts: number;
  readonly numChoices: number;
  readonly choices: readonly number[];
}

/**
 * The routings of a run's last recorded steps, in `routing.json` of its output folder: for each layer of experts, by
 * its name, a record that `routingRecordFromJson` takes. Tokens stand by the place of their rank along `mesh.expert`.
 */
export class RoutingFile {
  private readonly path: string;
  private readonly maxSteps: number;
  private readonly layers: Map<string, RoutingRecord>;

  /**
   * @param maxSteps how many steps of a layer are kept at most. @param fromStep steps that were done before; what an
   * earlier attempt recorded of later ones is left out.
   */
  constructor(folder: string, maxSteps: number, fromStep: number) {
    this.path = join(folder, routingFile);
    this.maxSteps = maxSteps;
    const kept = existsSync(this.path)
      ? (JSON.parse(readFileSync(this.path, "utf8")) as Readonly<Record<string, RoutingRecordJson>>)
      : {};
    this.layers = new Map(
      Object.entries(kept).map(([layer, record]) => [
        layer,
        {
          maxSteps,
          steps: routingRecordFromJson(record)
            .steps.filter(({ step }) => step <= fromStep)
            .slice(-maxSteps),
        },
      ]),
    );
  }

  record(step: number, layers: Readonly<Record<string, RoutingJson>>): void {
    for (const [layer, { choices, ...sizes }] of Object.entries(layers)) {
      const record = this.layers.get(layer) ?? routingRecord(this.maxSteps);
      this.layers.set(layer, recordRouting(record, step, { ...sizes, choices: Int32Array.from(choices) }));
    }
    const json = Object.fromEntries([...this.layers].map(([layer, record]) => [layer, routingRecordToJson(record)]));
    replaceDurably(nodeFiles, this.path, `${JSON.stringify(json)}\n`);
  }
}
