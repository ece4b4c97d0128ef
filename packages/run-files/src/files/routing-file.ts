import { existsSync } from "node:fs";
import { join } from "node:path";
import { ConfigError, nodeFiles, readBoundedJson, recordSchema, replaceDurably } from "@skein/cli/node";
import {
  recordRouting,
  type RoutingRecord,
  routingRecord,
  routingRecordFromJson,
  type RoutingRecordJson,
  routingRecordToJson,
} from "@skein/moe-parallel/routing";
import { z } from "zod";

export const routingFile = "routing.json";

/** Experts chosen by the tokens of one step, as plain JSON that processes send to each other. */
export interface RoutingJson {
  readonly numExperts: number;
  readonly numChoices: number;
  readonly choices: readonly number[];
}

const isArray = <Item>() => z.custom<readonly Item[]>((value) => Array.isArray(value));

const fileSchema: z.ZodType<Readonly<Record<string, RoutingRecordJson>>> = recordSchema(
  z.object({
    maxSteps: z.int(),
    steps: z.array(z.object({ step: z.int(), numExperts: z.int(), numChoices: z.int(), choices: isArray<number>() })),
  }),
);

/** Maximum size of `routing.json` in bytes, limited by the maximum string length. */
const maxRoutingBytes = 2 ** 29 - 2 ** 10;

/** Reads the routing records of the layers of a resumed run. @throws ConfigError if the file has another format. */
const recordsIn = (path: string): ReadonlyMap<string, RoutingRecord> => {
  if (!existsSync(path)) return new Map();
  try {
    const saved = fileSchema.parse(readBoundedJson(path, maxRoutingBytes));
    return new Map(Object.entries(saved).map(([layer, record]) => [layer, routingRecordFromJson(record)]));
  } catch (error) {
    const fault = error instanceof z.ZodError ? "it holds no routings" : (error as Error).message;
    throw new ConfigError([`${path}: cannot be read (${fault}); remove it, so that routings are recorded again`]);
  }
};

/**
 * Routings of the last recorded steps of a run, in `routing.json` of its output folder. The file has one record per
 * expert layer, by name, in the format read by `routingRecordFromJson`. Tokens are ordered by the coordinate of their
 * rank along `mesh.expert`.
 */
export class RoutingFile {
  private readonly path: string;
  private readonly maxSteps: number;
  private readonly layers: Map<string, RoutingRecord>;

  /**
   * Reads the routing file in `folder`, if there is one.
   * @param maxSteps Maximum number of recorded steps per layer.
   * @param fromStep Number of steps completed before this process; later records of an earlier attempt are removed.
   */
  constructor(folder: string, maxSteps: number, fromStep: number) {
    this.path = join(folder, routingFile);
    this.maxSteps = maxSteps;
    this.layers = new Map(
      [...recordsIn(this.path)].map(([layer, { steps }]) => [
        layer,
        { maxSteps, steps: steps.filter(({ step }) => step <= fromStep).slice(-maxSteps) },
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
